#include "gateway/inquiry.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/identifier.h"
#include "gateway/client_error.h"

namespace tidemark::gateway {
namespace {

using base::QuoteLiteral;

constexpr std::string_view kProbeSql = R"(
SELECT pg_catalog.to_regprocedure('tidemark.resolve_pinned(text[],text[],text[])') IS NOT NULL,
       coalesce(pg_catalog.current_setting('tidemark.as_of', true), '')
       || coalesce(pg_catalog.current_setting('tidemark.snapshot', true), '')
       || coalesce(pg_catalog.current_setting('tidemark.await', true), '') <> '',
       pg_catalog.current_setting('default_transaction_read_only') = 'on'
       AND EXISTS (SELECT FROM pg_catalog.pg_auth_members m
                   JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
                   JOIN pg_catalog.pg_roles r ON r.oid = m.member
                   WHERE g.rolname = 'tidemark_reader' AND r.rolname = session_user
                     AND NOT r.rolsuper),
       (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = session_user))";

constexpr std::string_view kPinSql = "SELECT tidemark.await_pin()";

constexpr std::string_view kStatementSql = R"(
SELECT s.statement, pg_catalog.array_to_string(s.parameter_types::pg_catalog.oid[], ' ')
  FROM pg_catalog.pg_prepared_statements s WHERE s.name = {} AND NOT s.from_sql)";

constexpr std::string_view kResolveSql = R"(
SELECT ord, kind, coalesce(schema_name, ''), coalesce(relation_name, ''),
       coalesce(volatile_function, '')
  FROM tidemark.resolve(ARRAY[{}]::pg_catalog.text[], ARRAY[{}]::pg_catalog.text[]))";

constexpr std::string_view kResolvePinnedSql = R"(
SELECT ord, kind, coalesce(schema_name, ''), coalesce(relation_name, ''),
       coalesce(volatile_function, ''), pinned_tx, cap_tx
  FROM tidemark.resolve_pinned(ARRAY[{}]::pg_catalog.text[], ARRAY[{}]::pg_catalog.text[],
                               ARRAY[{}]::pg_catalog.text[]))";

constexpr std::string_view kPreparedSql = R"(
SELECT n.name, s.statement
  FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.text[]) n(name)
  JOIN pg_catalog.pg_prepared_statements s
    ON s.name = (pg_catalog.parse_ident(n.name))[1] AND s.from_sql)";

constexpr std::string_view kViewsSql = R"(
SELECT kind, schema_name, relation_name, definition, refused, pinned_tx, cap_tx
  FROM tidemark.views(ARRAY[{}]::pg_catalog.text[]))";

rewrite::Relation::Kind KindOf(std::string_view word) {
  using Kind = rewrite::Relation::Kind;
  if (word == "versioned" || word == "parent") return Kind::kVersioned;
  if (word == "view") return Kind::kView;
  if (word == "materialized") return Kind::kMaterialized;
  if (word == "history") return Kind::kHistory;
  if (word == "plane") return Kind::kPlane;
  if (word == "plain") return Kind::kNotVersioned;
  return Kind::kMissing;
}

std::optional<std::string> Value(const wire::DataRow& row, size_t column) {
  if (column >= row.values.size() || !row.values[column]) return std::nullopt;
  return std::string(*row.values[column]);
}

/// Empty when the row has no such column.
std::string Field(const wire::DataRow& row, size_t column) {
  return Value(row, column).value_or(std::string());
}

std::string Literals(const std::vector<std::string>& values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + QuoteLiteral(value);
  return list;
}

/// `oids` in decimal with blanks between, as a Parse message holds them.
std::string ParameterTypes(std::string_view oids) {
  std::string types;
  uint16_t count = 0;
  while (!oids.empty()) {
    uint32_t oid = 0;
    const auto [end, error] = std::from_chars(oids.data(), oids.data() + oids.size(), oid);
    if (error != std::errc()) break;
    for (int shift = 24; shift >= 0; shift -= 8) types += static_cast<char>(oid >> shift);
    ++count;
    oids.remove_prefix(static_cast<size_t>(end - oids.data()));
    if (!oids.empty()) oids.remove_prefix(1);
  }
  return std::string{static_cast<char>(count >> 8), static_cast<char>(count)} + types;
}

}  // namespace

std::optional<Inquiry> Inquiry::Open(std::string_view text, const Context& context) {
  if (context.store == Store::kForeign || !rewrite::MayConcern(text, context.scope)) {
    return std::nullopt;
  }
  Inquiry inquiry(text, context);
  inquiry.Analyze();
  if (!inquiry.statement_ && !inquiry.refusal_) return std::nullopt;
  if (context.store == Store::kUnknown) {
    inquiry.Ask(Stage::kProbe, std::string(kProbeSql));
  } else {
    inquiry.Begin();
  }
  return inquiry;
}

Inquiry Inquiry::Probe() {
  Inquiry inquiry({}, {.protocol = Protocol::kSimple});
  inquiry.purpose_ = Purpose::kProbe;
  inquiry.Ask(Stage::kProbe, std::string(kProbeSql));
  return inquiry;
}

Inquiry Inquiry::ForBind(std::string_view statement, std::string pin, std::string text,
                         const Context& context) {
  Inquiry inquiry(text, context);
  inquiry.purpose_ = Purpose::kBind;
  inquiry.name_ = statement;
  inquiry.bound_pin_ = std::move(pin);
  inquiry.Ask(Stage::kPin, std::string(kPinSql));
  return inquiry;
}

void Inquiry::Ask(Stage stage, std::string sql) {
  stage_ = stage;
  sql_ = std::move(sql);
}

void Inquiry::Analyze() {
  try {
    statement_ = rewrite::Statement::Analyze(text_, context_.scope);
  } catch (const base::Error& error) {
    refusal_ = error;
  }
}

// The store is Tidemark's.
void Inquiry::Begin() {
  if (refusal_ || !statement_) return Finish();
  if (statement_->references().empty() && !context_.scope.pins) return OnResolved();
  Ask(Stage::kResolve, ResolveSql());
}

// The Bind goes on as it is, or its statement is looked at anew.
void Inquiry::OnPin() {
  if (pin_ == bound_pin_) return Finish();
  if (text_.empty() && name_.empty()) {
    refusal_ = base::Error(base::kFeatureNotSupported,
                           "statement is too long to be pinned to the past");
    return Finish();
  }
  if (text_.empty() && !name_.empty()) {
    return Ask(Stage::kStatement, fmt::format(kStatementSql, QuoteLiteral(name_)));
  }
  reparses_ = true;
  Analyze();
  Begin();
}

void Inquiry::OnResolved() {
  if (resolutions_.size() != statement_->references().size()) {
    refusal_ =
        base::Error(base::kInternalError, "tidemark.resolve returned a wrong number of rows");
    return Finish();
  }
  if (!context_.scope.pins || statement_->executed().empty()) return AskForViews();
  if (context_.protocol == Protocol::kExtended) {
    if (pin_.empty()) return AskForViews();
    refusal_ = base::Error(base::kFeatureNotSupported,
                           "EXECUTE in the extended protocol cannot be pinned to the past")
                   .Hint("Bind the statement in the protocol, or send EXECUTE as a simple query.");
    return Finish();
  }
  Ask(Stage::kPrepared, fmt::format(kPreparedSql, Literals(statement_->executed())));
}

// Each PREPARE is written so that it obeys whatever pin is set when it is executed.
void Inquiry::NextInner() {
  if (executed_.size() == prepared_.size()) return AskForViews();
  const Prepared& next = prepared_[executed_.size()];
  const auto server = rewrite::FindPrepare(next.server, next.name);
  std::string client = server.value_or(next.server);
  if (context_.prepared != nullptr) {
    const auto known = context_.prepared->find(rewrite::FoldedName(next.name));
    if (known != context_.prepared->end() && known->second.server == client) {
      client = known->second.client;
    }
  }
  auto inner = Open(client, {.protocol = Protocol::kSimple,
                             .store = Store::kTidemark,
                             .scope = {.executes = false, .pins = true}});
  if (!inner) {
    executed_.push_back({.name = next.name, .prepare = {}, .obedience = {}});
    return NextInner();
  }
  inner_ = std::make_unique<Inquiry>(std::move(*inner));
  if (inner_->sql().empty()) OnInner();
}

void Inquiry::OnInner() {
  const std::unique_ptr<Inquiry> inner = std::move(inner_);
  if (inner->refusal_) {
    refusal_ = base::Error(inner->refusal_->state(), inner->refusal_->message())
                   .Detail(inner->refusal_->detail())
                   .Hint(inner->refusal_->hint());
    return Finish();
  }
  Prepared& done = prepared_[executed_.size()];
  rewrite::ExecutedStatement executed{.name = done.name, .prepare = {}, .obedience = {}};
  if (inner->rewritten_) {
    executed.obedience = inner->rewritten_->prepared;
    if (rewrite::FindPrepare(done.server, done.name) != inner->rewritten_->sql) {
      executed.prepare = inner->rewritten_->sql;
      done.client = inner->text_;
    }
  }
  executed_.push_back(std::move(executed));
  NextInner();
}

SqlPreparedNames Inquiry::prepares() const {
  SqlPreparedNames names;
  if (!rewritten_) return names;
  for (const Prepared& done : prepared_) {
    const auto server = rewrite::FindPrepare(rewritten_->sql, done.name);
    if (server && !done.client.empty()) {
      names[rewrite::FoldedName(done.name)] = {*server, done.client};
    }
  }
  for (const std::string& name : rewrite::PreparedNames(text_)) {
    names[rewrite::FoldedName(name)] = {
        rewrite::FindPrepare(rewritten_->sql, name).value_or(std::string()),
        rewrite::FindPrepare(text_, name).value_or(std::string())};
  }
  return names;
}

void Inquiry::AskForViews() {
  const auto views = statement_->Views(resolutions_, !pin_.empty());
  if (views.empty()) return OnFacts();
  Ask(Stage::kViews, fmt::format(kViewsSql, Literals(views)));
}

void Inquiry::OnFacts() {
  Render();  // nothing of a statement that is refused is evaluated
  if (refusal_ || context_.protocol == Protocol::kExtended) return Finish();
  if (!statement_->evaluable_instants().empty()) return Ask(Stage::kEvaluate, EvaluateSql());
  Settle();
}

void Inquiry::Settle() {
  if (!rewritten_ || !rewritten_->settles) return Finish();
  Ask(Stage::kSettle, std::string(kSettleSql));
}

void Inquiry::Render() {
  try {
    rewritten_ = statement_->Render({
        .resolutions = resolutions_,
        .evaluated = evaluated_,
        .view_relations = view_relations_,
        .pinned = !pin_.empty(),
        .refused_function = refused_function_,
        .executed = executed_,
        .settles_inside = context_.protocol == Protocol::kSimple,
    });
  } catch (const base::Error& error) {
    rewritten_.reset();
    refusal_ = error;
  }
}

void Inquiry::Finish() { Ask(Stage::kDone, ""); }

std::string Inquiry::ResolveSql() const {
  std::string names, functions;
  for (const auto& reference : statement_->references()) {
    names += (names.empty() ? "" : ", ") + QuoteLiteral(reference.name);
    functions += (functions.empty() ? "(ARRAY[" : ", (ARRAY[") + Literals(reference.functions) +
                 "]::pg_catalog.text[])::pg_catalog.text";
  }
  return context_.scope.pins
             ? fmt::format(kResolvePinnedSql, names, functions, Literals(statement_->calls()))
             : fmt::format(kResolveSql, names, functions);
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
  if (inner_) return inner_->OnRow(row);
  switch (stage_) {
    case Stage::kProbe:
      context_.store = Field(row, 0) == "t" ? Store::kTidemark : Store::kForeign;
      began_pinned_ = Field(row, 1) == "t";
      is_reader_ = Field(row, 2) == "t";
      is_superuser_ = Field(row, 3) == "t";
      break;
    case Stage::kPin:
      knows_pin_ = true;
      pin_ = Field(row, 0);
      break;
    case Stage::kStatement:
      text_ = Field(row, 0);
      parameter_types_ = ParameterTypes(Field(row, 1));
      break;
    case Stage::kResolve:
      OnResolution(row);
      break;
    case Stage::kPrepared:
      prepared_.push_back({Field(row, 0), Field(row, 1)});
      break;
    case Stage::kViews:
      OnView(row);
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

// Row 0 is the session's pin.
void Inquiry::OnResolution(const wire::DataRow& row) {
  if (Field(row, 0) == "0") {
    knows_pin_ = true;
    pin_ = Field(row, 3);
    refused_function_ = Field(row, 4);
    return;
  }
  rewrite::Resolution resolution;
  resolution.kind = KindOf(Field(row, 1));
  resolution.parent = Field(row, 1) == "parent";
  resolution.name = {Field(row, 2), Field(row, 3)};
  resolution.volatile_function = Field(row, 4);
  resolution.pinned_tx = Value(row, 5);
  resolution.cap_tx = Value(row, 6);
  resolutions_.push_back(std::move(resolution));
}

void Inquiry::OnView(const wire::DataRow& row) {
  rewrite::ViewRelation relation;
  relation.kind = KindOf(Field(row, 0));
  relation.parent = Field(row, 0) == "parent";
  relation.name = {Field(row, 1), Field(row, 2)};
  relation.definition = Field(row, 3);
  relation.refused_function = Field(row, 4);
  relation.pinned_tx = Value(row, 5);
  relation.cap_tx = Value(row, 6);
  view_relations_.push_back(std::move(relation));
}

void Inquiry::OnAnswered() {
  if (inner_) {
    inner_->OnAnswered();
    if (inner_->sql().empty()) OnInner();
    return;
  }
  switch (stage_) {
    case Stage::kProbe:
      if (purpose_ == Purpose::kText && context_.store == Store::kTidemark) {
        if (began_pinned_ && !context_.scope.pins) {
          context_.scope.pins = true;
          Analyze();
        }
        return Begin();
      }
      refusal_.reset();
      return Finish();
    case Stage::kPin:
      return OnPin();
    case Stage::kStatement:
      if (text_.empty()) return Finish();  // no such statement: the server says so
      return OnPin();
    case Stage::kResolve:
      return OnResolved();
    case Stage::kPrepared:
      return NextInner();
    case Stage::kViews:
      return OnFacts();
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
  if (stage_ != Stage::kEvaluate) {
    error.Set('W', "");
    return;
  }
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
