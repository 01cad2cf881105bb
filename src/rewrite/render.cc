// From what Analyze found and what the store said of the names to PostgreSQL's own SQL. Every form
// becomes one function call of the schema tidemark in the place of the table reference:
//   AS OF      tidemark.as_of_tx(NULL::Q, tidemark.tx_at('Q'::regclass, instant))
//   AS OF      LATERAL (SELECT f.* FROM (SELECT tidemark.tx_at(…) AS x OFFSET 0) AS w,
//              tidemark.as_of_tx(NULL::Q, w.x) AS f) when the instant refers to columns: tx_at is
//              called once for each of their rows
//   AS OF      tidemark.as_of_tx_once(…) when the instant is no constant of the plan
//   the rest   tidemark.versions(NULL::Q, axis, form, a, b)
#include <algorithm>
#include <span>
#include <utility>

#include "rewrite/characters.h"
#include "rewrite/complaint.h"
#include "rewrite/plan.h"
#include "rewrite/statement.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {
namespace {

std::string_view ToTx(Axis axis) {
  switch (axis) {
    case Axis::kSystemTime:
      return "tidemark.tx_at";
    case Axis::kSourceTime:
      return "tidemark.tx_at_source";
    case Axis::kSourcePosition:
      return "tidemark.tx_at_position";
  }
  return {};
}

std::string_view NameOf(Form form) {
  switch (form) {
    case Form::kAsOf:
      break;
    case Form::kFromTo:
      return "from_to";
    case Form::kBetween:
      return "between";
    case Form::kSymmetric:
      return "symmetric";
    case Form::kContained:
      return "contained";
    case Form::kAll:
      return "all";
  }
  return {};
}

void RefuseUnresolved(const Plan& plan, const Plan::TemporalReference& temporal,
                      const Statement::Reference& reference, const Resolution& resolution) {
  const std::string words(WordsOf(temporal.bound.clause.axis));
  const std::string relation = "relation \"" + reference.display + '"';
  const auto complain = [&](base::SqlState state, std::string message, size_t offset) {
    return Complaint(state, std::move(message), plan.client, offset);
  };
  switch (resolution.kind) {
    case Resolution::Kind::kMissing:
      throw complain(base::kUndefinedTable, relation + " does not exist", reference.client_offset);
    case Resolution::Kind::kNotVersioned:
      throw complain(base::kWrongObjectType, relation + " is not system-versioned",
                     reference.client_offset);
    case Resolution::Kind::kView:
      throw complain(base::kFeatureNotSupported,
                     words + " is not supported on view \"" + reference.display + "\" yet",
                     reference.client_offset)
          .Hint("Name the tables of the view, each with its own " + words + ".");
    case Resolution::Kind::kVersioned:
      break;
  }
  if (resolution.volatile_function.empty()) return;
  size_t offset = temporal.instants.empty() ? reference.client_offset : temporal.instants[0].begin;
  for (const Instant& instant : temporal.instants) {
    for (const Instant::Call& call : instant.calls) {
      if (call.name == resolution.volatile_function) offset = call.offset;
    }
  }
  throw complain(base::kInvalidObjectDefinition,
                 InstantOf(temporal.bound.clause.axis) + " must not contain volatile functions",
                 offset);
}

/// Appends to `edit` an instant: the client's own text, or the constant it was evaluated to.
void AppendInstant(Edit& edit, const Plan::TemporalReference& temporal, size_t i,
                   std::span<const std::string> evaluated) {
  const Instant& instant = temporal.instants[i];
  const auto place = temporal.evaluable[i];
  if (place && !evaluated.empty()) {
    edit.Generate(base::QuoteLiteral(evaluated[*place]) + "::timestamptz", instant.begin);
  } else {
    edit.Keep(instant.begin, instant.end);
  }
}

Edit EditOf(const Plan::TemporalReference& temporal, const base::QualifiedName& name,
            std::span<const std::string> evaluated) {
  const BoundClause& bound = temporal.bound;
  const Clause& clause = bound.clause;
  const std::string relation = name.Quoted();
  const size_t shown_at = bound.name.begin;
  Edit edit{bound.whole.begin, bound.whole.end, {}};
  if (clause.form == Form::kAsOf) {
    const InstantKind kind = temporal.instants[0].kind;
    const bool constant = kind == InstantKind::kLiteral || kind == InstantKind::kPerRow ||
                          (temporal.evaluable[0] && !evaluated.empty());
    const bool per_row = kind == InstantKind::kPerRow;
    const std::string read =
        (constant ? "tidemark.as_of_tx(NULL::" : "tidemark.as_of_tx_once(NULL::") + relation + ", ";
    edit.Generate(per_row ? "LATERAL (SELECT f.* FROM (SELECT " : read, shown_at);
    edit.Generate(
        std::string(ToTx(clause.axis)) + '(' + base::QuoteLiteral(relation) + "::regclass, ",
        temporal.instants[0].begin);
    AppendInstant(edit, temporal, 0, evaluated);
    edit.Generate(per_row ? ") AS x OFFSET 0) AS w, " + read + "w.x) AS f)" : "))", shown_at);
  } else {
    edit.Generate("tidemark.versions(NULL::" + relation +
                      (clause.axis == Axis::kSystemTime ? ", 'system', '" : ", 'source', '") +
                      std::string(NameOf(clause.form)) + "', ",
                  shown_at);
    if (temporal.instants.empty()) {
      edit.Generate("NULL, NULL", shown_at);
    } else {
      AppendInstant(edit, temporal, 0, evaluated);
      edit.Generate(", ", shown_at);
      AppendInstant(edit, temporal, 1, evaluated);
    }
    edit.Generate(")", shown_at);
  }
  if (bound.alias.empty()) {
    edit.Generate(" AS " + base::QuoteIdentifier(bound.table.name.back()), shown_at);
  } else {
    edit.Generate(" ", shown_at);
    edit.Keep(bound.alias.begin, bound.alias.end);
  }
  return edit;
}

/// schema.table.column no longer finds the function's result; table.column does.
std::optional<Edit> EditOf(const Plan& plan, const ColumnReference& column,
                           std::span<const Resolution> resolutions) {
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    if (!plan.entries[i].temporal) continue;
    const TableReference& table = plan.entries[i].temporal->bound.table;
    if (table.has_alias || !IsWithin(plan.levels, column.level, table.level)) continue;
    if (resolutions[i].name.schema != column.schema() || table.name.back() != column.table()) {
      continue;
    }
    const TokenList tokens(std::string_view(plan.client).substr(column.offset));
    size_t at = 0;
    for (size_t part = column.name.size() - (column.star ? 1 : 2); part > 0; --part) {
      at = tokens.PastName(at) + 1;
    }
    Edit edit{column.offset, column.offset + tokens[tokens.PastName(at) - 1].end, {}};
    const size_t begin = column.offset + tokens[at].begin;
    edit.Generate(plan.client.substr(begin, edit.end - begin), column.offset);
    return edit;
  }
  return std::nullopt;
}

/// True when the instants may lie after the snapshot in which they are looked up.
bool Settles(const Plan::TemporalReference& temporal, StatementKind kind) {
  if (temporal.bound.clause.axis != Axis::kSystemTime || temporal.instants.empty()) return false;
  const bool planned_first =
      kind == StatementKind::kQuery && temporal.bound.clause.form == Form::kAsOf;
  return !planned_first || std::ranges::any_of(temporal.instants, &Instant::present);
}

/// Where the only instant stands, for errors that have no position of their own.
int PositionOfInstant(const Plan& plan) {
  std::optional<size_t> offset;
  for (const Plan::Entry& entry : plan.entries) {
    if (!entry.temporal || entry.temporal->instants.empty()) continue;
    if (offset) return 0;
    offset = entry.temporal->instants.front().begin;
  }
  return offset ? CharacterPosition(plan.client, *offset) : 0;
}

}  // namespace

Rewritten Statement::Render(std::span<const Resolution> resolutions,
                            std::span<const std::string> evaluated, bool settles_inside) const {
  if (resolutions.size() != references_.size() ||
      (!evaluated.empty() && evaluated.size() != evaluable_instants_.size())) {
    throw base::Error(base::kInternalError, "rewrite was given answers to other questions");
  }
  std::vector<Edit> edits;
  std::vector<bool> settling(plan_->statements.size());
  for (size_t i = 0; i < references_.size(); ++i) {
    const Plan::Entry& entry = plan_->entries[i];
    if (!entry.temporal) {
      if (resolutions[i].kind == Resolution::Kind::kVersioned) {
        std::ranges::copy(entry.copy, std::back_inserter(edits));
      }
      continue;
    }
    const Plan::TemporalReference& temporal = *entry.temporal;
    RefuseUnresolved(*plan_, temporal, references_[i], resolutions[i]);
    edits.push_back(EditOf(temporal, resolutions[i].name, evaluated));
    if (const Bytes word = temporal.bound.table_command; !word.empty()) {
      Edit& command = edits.emplace_back(Edit{word.begin, word.end, {}});
      command.Generate("SELECT * FROM", word.begin);
    }
    if (Settles(temporal, plan_->statements[entry.statement].kind)) {
      settling[entry.statement] = true;
    }
  }
  for (const ColumnReference& column : plan_->columns) {
    if (auto edit = EditOf(*plan_, column, resolutions)) edits.push_back(std::move(*edit));
  }
  bool settles = false, prepares_settling = false;
  std::vector<size_t> hidden_results;
  for (size_t i = 0; i < settling.size(); ++i) {
    const auto [kind, begin] = plan_->statements[i];
    const bool prepares = kind == StatementKind::kPrepare;
    prepares_settling = prepares_settling || (prepares && settling[i]);
    if (prepares || !(settling[i] || kind == StatementKind::kExecute)) continue;
    if (!settles_inside || (settling.size() == 1 && kind != StatementKind::kExecute)) {
      settles = true;
      continue;
    }
    hidden_results.push_back(i + hidden_results.size());
    edits.push_back({begin, begin, {}});
    edits.back().Generate("SELECT tidemark.settle(); ", begin);
  }
  Rewritten rewritten = ApplyEdits(plan_->client, std::move(edits));
  rewritten.settles = settles;
  rewritten.hidden_results = std::move(hidden_results);
  rewritten.prepares_settling = prepares_settling;
  rewritten.instant_position = PositionOfInstant(*plan_);
  return rewritten;
}

}  // namespace tidemark::rewrite
