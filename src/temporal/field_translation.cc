#include "temporal/field_translation.h"

#include <fmt/format.h>

#include "base/error.h"
#include "wire/bytes.h"
#include "wire/utf8.h"

namespace tidemark::temporal {

using base::Error;
using wire::pgoutput::FieldKind;

std::string ShowValue(const DatasetColumn& column, std::string_view value) {
  constexpr pg::Oid kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kBpchar = 1042, kVarchar = 1043;
  const pg::Oid type = column.source_type;
  if (!column.binary || type == kText || type == kBpchar || type == kVarchar) {
    std::string text(value.substr(0, 200));
    wire::ReplaceInvalidUtf8(text);
    return fmt::format("'{}'", text);
  }
  if (type == kInt2 && value.size() == 2) {
    return std::to_string(wire::LoadBigEndian<int16_t>(value.data()));
  }
  if (type == kInt4 && value.size() == 4) {
    return std::to_string(wire::LoadBigEndian<int32_t>(value.data()));
  }
  if (type == kInt8 && value.size() == 8) {
    return std::to_string(wire::LoadBigEndian<int64_t>(value.data()));
  }
  std::string hex = "\\x";
  for (const char c : value.substr(0, 64)) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return hex;
}

namespace {

// `, key id=7`; empty where rows have no key.
std::string KeyOf(const Dataset& dataset, wire::pgoutput::Tuple row) {
  std::string text;
  for (const size_t at : dataset.KeyPositions()) {
    const auto& field = row[at];
    const bool known = field.kind == FieldKind::kBinary || field.kind == FieldKind::kText;
    text += fmt::format("{}{}={}", text.empty() ? ", key " : ", ",
                        base::DisplayIdentifier(dataset.columns[at].name),
                        known ? ShowValue(dataset.columns[at], field.value) : "?");
  }
  return text;
}

}  // namespace

void TranslateField(const Dataset& dataset, size_t column, const wire::TypeNode& plan,
                    std::span<char> value, wire::pgoutput::Tuple row) {
  try {
    wire::Translate(plan, value);
  } catch (const Error& error) {
    const auto refusal = [&](std::string_view what) {
      return Error(error.state(),
                   fmt::format("column {} of {} has {}{}",
                               base::DisplayIdentifier(dataset.columns[column].name),
                               dataset.name.Display(), what, KeyOf(dataset, row)));
    };
    if (error.state() == base::kDatetimeOverflow) {
      throw refusal("an infinite interval")
          .Detail("The store's PostgreSQL is older than 17, which has them first.")
          .Hint("Use a store of PostgreSQL 17 or newer, or give the interval another value at the "
                "source and run \"tidemark resync\" for the table.");
    }
    if (error.state() != base::kCharacterNotInRepertoire) throw;
    throw refusal("text that is not UTF-8")
        .Detail(fmt::format("The source's encoding is SQL_ASCII, so it takes any bytes: {}.",
                            error.message()))
        .Hint("Mend the value at the source and run \"tidemark resync\" for the table, or set "
              "encoding_errors: replace for the mirror.");
  }
}

}  // namespace tidemark::temporal
