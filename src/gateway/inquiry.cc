#include "gateway/inquiry.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/identifier.h"
#include "gateway/client_error.h"

namespace tidemark::gateway {
namespace {

constexpr std::string_view kProbeSql =
    R"(SELECT pg_catalog.to_regprocedure('tidemark.resolve(text[],text[])') IS NOT NULL)";

constexpr std::string_view kResolveSql = R"(
SELECT ord, kind, coalesce(schema_name, ''), coalesce(relation_name, ''),
       coalesce(volatile_function, '')
  FROM tidemark.resolve(ARRAY[{}]::pg_catalog.text[], ARRAY[{}]::pg_catalog.text[]))";

rewrite::Resolution::Kind KindOf(std::string_view word) {
  using Kind = rewrite::Resolution::Kind;
  if (word == "versioned") return Kind::kVersioned;
  if (word == "view") return Kind::kView;
  if (word == "plain") return Kind::kNotVersioned;
  return Kind::kMissing;
}

/// Empty when the row has no such column.
std::string Field(const wire::DataRow& row, size_t column) {
  if (column >= row.values.size()) return {};
  return std::string(row.values[column].value_or(std::string_view()));
}

}  // namespace

std::optional<Inquiry> Inquiry::Open(std::string_view text, Protocol protocol, Store store,
                                     const rewrite::Scope& scope) {
  if (store == Store::kForeign || !rewrite::MayConcern(text, scope)) return std::nullopt;
  Inquiry inquiry(text, protocol, store);
  try {
    inquiry.statement_ = rewrite::Statement::Analyze(text, scope);
    if (!inquiry.statement_) return std::nullopt;
  } catch (const base::Error& error) {
    inquiry.refusal_ = error;
  }
  if (store == Store::kUnknown) {
    inquiry.Ask(Stage::kProbe, std::string(kProbeSql));
  } else {
    inquiry.Begin();
  }
  return inquiry;
}

void Inquiry::Ask(Stage stage, std::string sql) {
  stage_ = stage;
  sql_ = std::move(sql);
}

// The store is Tidemark's.
void Inquiry::Begin() {
  if (refusal_) return Finish();
  if (statement_->references().empty()) return OnResolved();
  Ask(Stage::kResolve, ResolveSql());
}

void Inquiry::OnResolved() {
  if (resolutions_.size() != statement_->references().size()) {
    refusal_ =
        base::Error(base::kInternalError, "tidemark.resolve returned a wrong number of rows");
    return Finish();
  }
  Render();  // nothing of a statement that is refused is evaluated
  if (refusal_ || protocol_ == Protocol::kExtended) return Finish();
  if (!statement_->evaluable_instants().empty()) return Ask(Stage::kEvaluate, EvaluateSql());
  Settle();
}

void Inquiry::Settle() {
  if (!rewritten_ || !rewritten_->settles) return Finish();
  Ask(Stage::kSettle, std::string(kSettleSql));
}

void Inquiry::Render() {
  try {
    rewritten_ =
        statement_->Render(resolutions_, evaluated_, protocol_ == Protocol::kSimple);
  } catch (const base::Error& error) {
    rewritten_.reset();
    refusal_ = error;
  }
}

void Inquiry::Finish() { Ask(Stage::kDone, ""); }

std::string Inquiry::ResolveSql() const {
  std::string names, functions;
  for (const auto& reference : statement_->references()) {
    std::string list;
    for (const auto& function : reference.functions) {
      list += (list.empty() ? "" : ", ") + base::QuoteLiteral(function);
    }
    names += (names.empty() ? "" : ", ") + base::QuoteLiteral(reference.name);
    functions += (functions.empty() ? "(ARRAY[" : ", (ARRAY[") + list +
                 "]::pg_catalog.text[])::pg_catalog.text";
  }
  return fmt::format(kResolveSql, names, functions);
}

// The new line ends a comment inside an instant.
std::string Inquiry::EvaluateSql() {
  std::string sql;
  for (const auto& instant : statement_->evaluable_instants()) {
    sql += sql.empty() ? "SELECT (" : ", (";
    evaluated_at_.push_back(sql.size());
    sql += instant + "\n)::pg_catalog.timestamptz::pg_catalog.text";
  }
  return sql;
}

void Inquiry::OnRow(const wire::DataRow& row) {
  switch (stage_) {
    case Stage::kProbe:
      store_ = Field(row, 0) == "t" ? Store::kTidemark : Store::kForeign;
      break;
    case Stage::kResolve:
      resolutions_.push_back({.kind = KindOf(Field(row, 1)),
                              .name = {Field(row, 2), Field(row, 3)},
                              .volatile_function = Field(row, 4)});
      break;
    case Stage::kEvaluate:
      for (const auto& value : row.values) {
        // A NULL instant is left to the statement itself, which refuses it.
        if (!value) return evaluated_.clear();
        evaluated_.emplace_back(*value);
      }
      break;
    case Stage::kSettle:
    case Stage::kDone:
      break;
  }
}

void Inquiry::OnAnswered() {
  switch (stage_) {
    case Stage::kProbe:
      if (store_ == Store::kTidemark) return Begin();
      refusal_.reset();
      return Finish();
    case Stage::kResolve:
      return OnResolved();
    case Stage::kEvaluate:
      Render();
      return Settle();
    case Stage::kSettle:
    case Stage::kDone:
      return Finish();
  }
}

void Inquiry::Translate(wire::ErrorFields& error) const {
  const std::string field(error.Find('P'));
  error.Set('P', "");
  if (stage_ != Stage::kEvaluate) return;
  TranslateInstantType(error);
  int position = 0;
  std::from_chars(field.data(), field.data() + field.size(), position);
  const auto& instants = statement_->evaluable_instants();
  for (size_t i = 0; i < instants.size(); ++i) {
    const size_t begin = CountCharacters(std::string_view(sql_).substr(0, evaluated_at_[i])) + 1;
    const auto at = static_cast<size_t>(position);
    if (at < begin || at > begin + CountCharacters(instants[i])) continue;
    const size_t in_text = text_.find(instants[i]);
    if (in_text == std::string::npos) return;
    const size_t before = CountCharacters(std::string_view(text_).substr(0, in_text));
    error.Set('P', fmt::format("{}", before + 1 + at - begin));
    return;
  }
}

}  // namespace tidemark::gateway
