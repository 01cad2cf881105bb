// From what Analyze found and what the store said of the names to PostgreSQL's own SQL: which
// references are replaced, and what must run before a statement. What stands in the place of one
// reference is told in reading.h.
#include <algorithm>
#include <utility>

#include "rewrite/characters.h"
#include "rewrite/complaint.h"
#include "rewrite/plan.h"
#include "rewrite/reading.h"
#include "rewrite/statement.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {
namespace {

using Use = Statement::Reference::Use;

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
    case Resolution::Kind::kMaterialized:
      throw complain(base::kFeatureNotSupported,
                     words + " is not allowed on materialized view \"" + reference.display + '"',
                     reference.client_offset)
          .Hint("Ask its query, with " + words + " on the tables.");
    case Resolution::Kind::kHistory:
      throw complain(base::kFeatureNotSupported,
                     words + " is not allowed on history view \"" + reference.display + '"',
                     reference.client_offset)
          .Hint("Put it on the table that the view shows the versions of.");
    case Resolution::Kind::kPlane:
      throw complain(base::kWrongObjectType, relation + " is not system-versioned",
                     reference.client_offset)
          .Hint("Put it on the table whose rows it holds.");
    case Resolution::Kind::kView:
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

/// What a pinned session must not read at its latest, and cannot be read otherwise; empty for what
/// can.
std::string WhyUnpinnable(const Resolution& resolution, const std::string& display) {
  switch (resolution.kind) {
    case Relation::Kind::kMaterialized:
      return "materialized view \"" + display + "\" cannot be pinned to the past";
    case Relation::Kind::kPlane:
      return "relation \"" + display + "\" cannot be pinned to the past";
    default:
      return {};
  }
}

bool IsPinnable(const Resolution& resolution) {
  return resolution.kind == Relation::Kind::kVersioned ||
         resolution.kind == Relation::Kind::kHistory || resolution.kind == Relation::Kind::kView;
}

/// schema.table.column no longer finds the function's result; table.column does. `replaced` tells
/// which entries have become one.
std::optional<Edit> EditOf(const Plan& plan, const ColumnReference& column,
                           std::span<const Resolution> resolutions,
                           const std::vector<bool>& replaced) {
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    if (!replaced[i]) continue;
    const TableReference& table = plan.entries[i].table().table;
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

/// ONLY of a versioned table would read its parent, which holds nothing: blanks, byte for byte,
/// where no other table inherits from it.
void AppendWithoutOnly(std::vector<Edit>& edits, const BoundTable& bound) {
  for (const Bytes word : bound.only) {
    edits.push_back({word.begin, word.end, {}});
    edits.back().Generate(std::string(word.end - word.begin, ' '), word.begin);
  }
}

/// The edits of one text, statement by statement.
class Renderer {
 public:
  Renderer(const Plan& plan, const std::vector<Statement::Reference>& references,
           const Facts& facts)
      : plan_(plan),
        references_(references),
        facts_(facts),
        needs_(plan.statements.size()),
        replaced_(plan.entries.size()) {}

  Rewritten Render() {
    for (size_t i = 0; i < plan_.statements.size(); ++i) JudgeStatement(i);
    for (size_t i = 0; i < references_.size(); ++i) AddReference(i);
    for (const ColumnReference& column : plan_.columns) {
      auto edit = EditOf(plan_, column, facts_.resolutions, replaced_);
      if (edit) edits_.push_back(std::move(*edit));
    }
    AddPreludes();
    Rewritten rewritten = ApplyEdits(plan_.client, std::move(edits_));
    rewritten.settles = settles_;
    rewritten.hidden_results = std::move(hidden_results_);
    rewritten.prepares_settling = prepares_settling_;
    rewritten.prepared = std::move(prepared_);
    rewritten.instant_position = PositionOfInstant(plan_);
    return rewritten;
  }

 private:
  /// What must run right before a statement.
  struct Needs {
    bool settling = false;
    bool obeying = false;  // its pin is known only then
    std::string unpinnable;
  };

  /// The pin may change between now and the statement's execution, unseen.
  bool AtExecution(size_t statement) const {
    return plan_.pins && (plan_.statements.size() > 1 ||
                          plan_.statements[statement].kind == StatementKind::kPrepare);
  }

  void JudgeStatement(size_t i) {
    const Plan::Part& part = plan_.statements[i];
    if (!plan_.pins) return;
    std::string unpinnable = part.pinned.unpinnable;
    if (unpinnable.empty() && !facts_.refused_function.empty()) {
      unpinnable =
          "function " + facts_.refused_function + " may read tables and cannot be pinned to the past";
    }
    if (AtExecution(i)) {
      if (unpinnable.empty() && part.unreadable) unpinnable = part.unreadable->message();
      needs_[i].obeying = !part.pinned.write.empty() || !unpinnable.empty();
      needs_[i].unpinnable = unpinnable;
      return;
    }
    if (!facts_.pinned) return;
    if (part.unreadable) throw *part.unreadable;
    if (!part.pinned.write.empty()) {
      throw Complaint(base::kReadOnlyTransaction,
                      "cannot execute " + part.pinned.write + " in a session pinned to the past",
                      plan_.client, part.begin)
          .Hint("RESET tidemark.as_of and tidemark.snapshot first.");
    }
    if (!unpinnable.empty()) {
      throw Complaint(base::kFeatureNotSupported, unpinnable, plan_.client, part.begin);
    }
  }

  void AddReference(size_t i) {
    const Plan::Entry& entry = plan_.entries[i];
    const Resolution& resolution = facts_.resolutions[i];
    const ReadingContext context{plan_, facts_, AtExecution(entry.statement)};
    if (entry.temporal) {
      RefuseUnresolved(plan_, *entry.temporal, references_[i], resolution);
      Replace(i, EditOfClause(context, *entry.temporal, resolution));
      if (Settles(*entry.temporal, plan_.statements[entry.statement].kind)) {
        needs_[entry.statement].settling = true;
      }
      if (context.at_execution) needs_[entry.statement].obeying = true;
      return;
    }
    const bool pinned = plan_.pins && (facts_.pinned || context.at_execution);
    if (resolution.kind == Relation::Kind::kVersioned) {
      std::ranges::copy(entry.copy, std::back_inserter(edits_));
      if (!pinned && resolution.parent && ReadsOwnRows(i)) {
        return Replace(i, EditOfOwnRows(context, *entry.plain, resolution));
      }
      if (!pinned) AppendWithoutOnly(edits_, *entry.plain);
    }
    if (pinned) AddPinned(i, context);
  }

  /// ONLY, and COPY of a table, leave out the rows of tables that inherit from it.
  bool ReadsOwnRows(size_t i) const {
    return references_[i].use == Use::kCopy || !plan_.entries[i].table().only.empty();
  }

  void AddPinned(size_t i, const ReadingContext& context) {
    const Plan::Entry& entry = plan_.entries[i];
    const Resolution& resolution = facts_.resolutions[i];
    Needs& needs = needs_[entry.statement];
    std::string why = WhyUnpinnable(resolution, references_[i].display);
    const bool copy_of_other = references_[i].use == Use::kCopy &&
                               resolution.kind != Relation::Kind::kVersioned;
    if (why.empty() && (!IsPinnable(resolution) || copy_of_other)) return;
    try {
      if (why.empty()) {
        Replace(i, EditOfPinned(context, *entry.plain, resolution, ReadsOwnRows(i)));
      }
    } catch (const base::Error& error) {
      if (!context.at_execution) throw;
      why = error.message();
    }
    if (!why.empty() && !context.at_execution) {
      throw Complaint(base::kFeatureNotSupported, why, plan_.client, references_[i].client_offset);
    }
    needs.obeying = needs.obeying || context.at_execution;
    if (needs.unpinnable.empty()) needs.unpinnable = why;
  }

  void Replace(size_t i, Edit edit) {
    replaced_[i] = true;
    edits_.push_back(std::move(edit));
    if (const Bytes word = plan_.entries[i].table().table_command; !word.empty()) {
      Edit& command = edits_.emplace_back(Edit{word.begin, word.end, {}});
      command.Generate("SELECT * FROM", word.begin);
    }
  }

  void AddPreludes() {
    for (size_t i = 0; i < needs_.size(); ++i) {
      const Plan::Part& part = plan_.statements[i];
      const bool prepares = part.kind == StatementKind::kPrepare;
      const bool executes = part.kind == StatementKind::kExecute;
      prepares_settling_ = prepares_settling_ || (prepares && needs_[i].settling);
      if (prepares) {
        prepared_ = {part.pinned.write, needs_[i].unpinnable};
        continue;
      }
      if (executes && plan_.pins && facts_.settles_inside) {
        AddExecutePrelude(i);
      } else if (needs_[i].obeying && facts_.settles_inside) {
        AddPrelude(i, Obey({part.pinned.write, needs_[i].unpinnable}), 1);
      } else if (needs_[i].settling || executes) {
        if (facts_.settles_inside && (needs_.size() > 1 || executes)) {
          AddPrelude(i, "SELECT tidemark.settle(); ", 1);
        } else {
          settles_ = true;
        }
      }
    }
  }

  static std::string Obey(const Obedience& obedience) {
    return "SELECT tidemark.obey(" + base::QuoteLiteral(obedience.write) + ", " +
           base::QuoteLiteral(obedience.unpinnable) + "); ";
  }

  void AddExecutePrelude(size_t statement) {
    const std::string& name = plan_.statements[statement].executes;
    const auto found = std::ranges::find(facts_.executed, name, &ExecutedStatement::name);
    if (found == facts_.executed.end()) return;  // there is none: the server says so
    if (found->prepare.empty()) return AddPrelude(statement, Obey(found->obedience), 1);
    AddPrelude(statement,
               "DEALLOCATE " + name + "; " + found->prepare + "; " + Obey(found->obedience), 3);
  }

  void AddPrelude(size_t statement, std::string sql, size_t results) {
    const size_t begin = plan_.statements[statement].begin;
    for (; results > 0; --results) hidden_results_.push_back(statement + hidden_results_.size());
    edits_.push_back({begin, begin, {}});
    edits_.back().Generate(std::move(sql), begin);
  }

  const Plan& plan_;
  const std::vector<Statement::Reference>& references_;
  const Facts& facts_;
  std::vector<Needs> needs_;
  std::vector<bool> replaced_;
  std::vector<Edit> edits_;
  std::vector<size_t> hidden_results_;
  bool settles_ = false, prepares_settling_ = false;
  Obedience prepared_;
};

}  // namespace

std::vector<std::string> Statement::Views(std::span<const Resolution> resolutions,
                                          bool pinned) const {
  std::vector<std::string> views;
  for (size_t i = 0; i < references_.size(); ++i) {
    if (resolutions[i].kind != Relation::Kind::kView) continue;
    const bool reads_past = references_[i].use == Use::kClause ||
                            (references_[i].use == Use::kPlain && plan_->pins &&
                             (pinned || plan_->statements.size() > 1 ||
                              plan_->statements[0].kind == StatementKind::kPrepare));
    if (reads_past) views.push_back(resolutions[i].name.Quoted());
  }
  return views;
}

Rewritten Statement::Render(const Facts& facts) const {
  if (facts.resolutions.size() != references_.size() ||
      (!facts.evaluated.empty() && facts.evaluated.size() != evaluable_instants_.size())) {
    throw base::Error(base::kInternalError, "rewrite was given answers to other questions");
  }
  return Renderer(*plan_, references_, facts).Render();
}

}  // namespace tidemark::rewrite
