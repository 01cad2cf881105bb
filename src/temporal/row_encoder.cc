#include "temporal/row_encoder.h"

#include <algorithm>
#include <utility>

#include "wire/copy_binary.h"

namespace tidemark::temporal {

RowEncoder::RowEncoder(std::shared_ptr<arrow::Schema> schema, Options options)
    : encoder_(std::move(schema), {.write_ordinal = options.write_ordinal}),
      options_(std::move(options)),
      translates_(std::any_of(options_.translations.begin(), options_.translations.end(),
                              [](const auto* plan) { return plan != nullptr; })) {}

std::string RowEncoder::Encode(const arrow::RecordBatch& batch) {
  std::string rows;
  rows.reserve(bytes_before_ + bytes_before_ / 8);
  encoder_.WriteBatch(batch, rows);
  bytes_before_ = rows.size();
  return translates_ ? Translated(std::move(rows)) : rows;
}

// Values that name types by OID name the source's; the encoded rows are rewritten.
std::string RowEncoder::Translated(std::string rows) const {
  const size_t before = options_.write_ordinal ? 1 : 0;
  std::string header;
  wire::CopyBinaryWriter(header).WriteHeader();
  rows.insert(0, header);
  wire::CopyBinaryReader reader;
  reader.Feed(rows);
  std::string translated;
  wire::CopyBinaryWriter writer(translated);
  while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
    const auto fields = reader.fields();
    writer.WriteRow(static_cast<int16_t>(fields.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      writer.WriteField(fields[i]);
      const auto* plan = i < before ? nullptr : options_.translations[i - before];
      if (!fields[i] || plan == nullptr) continue;
      const size_t size = fields[i]->size();
      wire::Translate(*plan, {translated.data() + translated.size() - size, size});
    }
  }
  return translated;
}

}  // namespace tidemark::temporal
