#include "rewrite/instant.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/identifier.h"
#include "rewrite/complaint.h"
#include "rewrite/syntax_tree.h"

namespace tidemark::rewrite {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBefore = "SELECT (";
constexpr std::string_view kAfter = ")";

/// A type's name as SQL spells it, for the built-in types that cannot be an instant; else empty.
std::string_view NotAnInstant(const std::string& type) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kTypes = {
      {{"text", "text"},
       {"varchar", "character varying"},
       {"bpchar", "character"},
       {"name", "name"},
       {"int2", "smallint"},
       {"int4", "integer"},
       {"int8", "bigint"},
       {"float4", "real"},
       {"float8", "double precision"},
       {"numeric", "numeric"},
       {"bool", "boolean"},
       {"bit", "bit"},
       {"interval", "interval"},
       {"time", "time without time zone"},
       {"timetz", "time with time zone"},
       {"uuid", "uuid"},
       {"jsonb", "jsonb"}}};
  const auto* found = std::ranges::find(kTypes, type, [](const auto& t) { return t.first; });
  return found == kTypes.end() ? std::string_view() : found->second;
}

std::string_view TypeOfConstant(const Json& constant) {
  if (constant.contains("ival")) return "integer";
  if (constant.contains("fval")) return "numeric";
  if (constant.contains("boolval")) return "boolean";
  if (constant.contains("bsval")) return "bit";
  return {};
}

bool MentionsNow(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  return text.find("now") != std::string::npos;
}

/// The type's name without pg_catalog; empty for other schemas and arrays.
std::string BuiltInType(const Json& type_cast) {
  const Json& type = type_cast.at("typeName");
  auto names = NamesOf(type.value("names", Json::array()));
  if (names.size() == 2 && names[0] == "pg_catalog") names.erase(names.begin());
  return names.size() == 1 && !type.contains("arrayBounds") ? names[0] : std::string();
}

/// Aggregates that PostgreSQL has under names of their own; others show by their syntax only.
bool IsAggregate(const Json& call, std::vector<std::string> name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "avg", "bool_and", "bool_or", "count",      "every", "max",
      "min", "sum",      "stddev",  "string_agg", "mode",  "array_agg"};
  if (call.contains("agg_star") || call.contains("agg_order") || call.contains("agg_filter") ||
      call.contains("agg_distinct") || call.contains("agg_within_group")) {
    return true;
  }
  if (name.size() == 2 && name[0] == "pg_catalog") name.erase(name.begin());
  return name.size() == 1 && std::ranges::find(kNames, name[0]) != kNames.end();
}

class InstantReader {
 public:
  InstantReader(std::string_view sql, size_t begin, size_t end, Axis axis)
      : sql_(sql), axis_(axis) {
    instant_.begin = begin;
    instant_.end = end;
  }

  Instant Read() {
    const std::string text = std::string(kBefore) +
                             std::string(sql_.substr(instant_.begin, Length())) +
                             std::string(kAfter);
    const Parsed parsed = Parse(text);
    if (!parsed.tree) Refuse(base::kSyntaxError, parsed.message, ToClient(parsed.offset));
    const Json& select = parsed.tree->at("stmts").at(0).at("stmt").at("SelectStmt");
    const Json& value = select.at("targetList").at(0).at("ResTarget").at("val");
    Visit(value);
    Judge(value);
    return std::move(instant_);
  }

 private:
  size_t Length() const { return instant_.end - instant_.begin; }
  size_t ToClient(size_t offset) const {
    return instant_.begin + std::min(offset - std::min(offset, kBefore.size()), Length());
  }
  [[noreturn]] void Refuse(base::SqlState state, std::string message, size_t offset) const {
    throw Complaint(state, std::move(message), sql_, offset);
  }
  [[noreturn]] void RefuseInside(std::string what, const Json& node) const {
    Refuse(base::kFeatureNotSupported, what + " are not allowed in a " + InstantOf(axis_),
           ToClient(LocationOf(node)));
  }

  /// Without recursion, since expressions may be deep.
  void Visit(const Json& root) {
    std::vector<const Json*> pending = {&root};
    while (!pending.empty()) {
      const Json& node = *pending.back();
      pending.pop_back();
      for (auto child = node.begin(); child != node.end(); ++child) {
        if (!child->is_structured()) continue;
        if (node.is_object()) Note(child.key(), *child);
        pending.push_back(&*child);
      }
    }
    std::ranges::sort(instant_.calls, {}, &Instant::Call::offset);
  }

  void Note(const std::string& key, const Json& node) {
    if (key == "SubLink") RefuseInside("sub-queries", node);
    if (key == "GroupingFunc") RefuseInside("aggregate functions", node);
    if (key == "FuncCall") VisitCall(node);
    if (key == "ParamRef") parameters_ = true;
    if (key == "ColumnRef") {
      columns_ = true;
      AddColumn(node);
    }
  }

  void VisitCall(const Json& call) {
    const auto name = NamesOf(call.value("funcname", Json::array()));
    if (call.contains("over")) RefuseInside("window functions", call);
    if (IsAggregate(call, name)) RefuseInside("aggregate functions", call);
    // extract(), AT TIME ZONE and their like are PostgreSQL's own, and none is volatile.
    if (call.value("funcformat", std::string()) == "COERCE_SQL_SYNTAX") return;
    std::string quoted;
    for (const std::string& part : name) {
      quoted += (quoted.empty() ? "" : ".") + base::QuoteIdentifier(part);
    }
    instant_.calls.push_back({std::move(quoted), ToClient(LocationOf(call))});
  }

  void AddColumn(const Json& column_ref) {
    auto column = SchemaQualifiedColumn(column_ref);
    if (!column) return;
    column->offset = ToClient(column->offset);
    instant_.columns.push_back(std::move(*column));
  }

  void Judge(const Json& value) {
    const std::string own_type = axis_ == Axis::kSourcePosition ? "pg_lsn" : "timestamptz";
    bool own_casts = true;
    std::string_view wrong_type;
    const Json* node = &value;
    while (node->contains("TypeCast")) {
      const Json& cast = node->at("TypeCast");
      const std::string type = BuiltInType(cast);
      // What is cast on is the server's to judge.
      if (node == &value) wrong_type = NotAnInstant(type);
      own_casts = own_casts && type == own_type;
      node = &cast.at("arg");
    }
    const auto constant = node->find("A_Const");
    if (constant != node->end()) {
      if (constant->value("isnull", false)) {
        Refuse(base::kNullValueNotAllowed, InstantOf(axis_) + " must not be null", instant_.begin);
      }
      if (own_casts && node == &value) wrong_type = TypeOfConstant(*constant);
    }
    if (!wrong_type.empty()) {
      Refuse(base::kDatatypeMismatch,
             InstantOf(axis_) + " must be of type " +
                 (axis_ == Axis::kSourcePosition ? "pg_lsn" : "timestamp with time zone") +
                 ", not " + std::string(wrong_type),
             instant_.begin);
    }
    const bool literal = constant != node->end() && own_casts;
    instant_.kind = literal       ? InstantKind::kLiteral
                    : columns_    ? InstantKind::kPerRow
                    : parameters_ ? InstantKind::kParameter
                                  : InstantKind::kStable;
    instant_.present = !literal || (constant->contains("sval") &&
                                    MentionsNow(constant->at("sval").value("sval", std::string())));
  }

  const std::string_view sql_;
  const Axis axis_;
  Instant instant_{};
  bool parameters_ = false, columns_ = false;
};

bool StartsQuery(const TokenList& tokens, size_t i) {
  return tokens.IsWord(i, "select") || tokens.IsWord(i, "with") || tokens.IsWord(i, "values");
}

}  // namespace

std::string InstantOf(Axis axis) {
  return std::string(WordsOf(axis)) + (axis == Axis::kSourcePosition ? " position" : " instant");
}

Instant ReadInstant(std::string_view sql, const TokenList& tokens, Clause::Span span, Axis axis) {
  for (size_t i = span.begin; i + 1 < span.end; ++i) {
    // Found before the grammar sees it, since it may hold clauses that the grammar does not know.
    if (tokens.IsPunctuation(i, '(') && StartsQuery(tokens, i + 1)) {
      throw Complaint(base::kFeatureNotSupported,
                      "sub-queries are not allowed in a " + InstantOf(axis), sql, tokens[i].begin);
    }
  }
  return InstantReader(sql, tokens[span.begin].begin, tokens[span.end - 1].end, axis).Read();
}

}  // namespace tidemark::rewrite
