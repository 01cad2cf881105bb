#include "rewrite/statement.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rewrite/binding.h"
#include "rewrite/clause.h"
#include "rewrite/complaint.h"
#include "rewrite/copy.h"
#include "rewrite/plan.h"
#include "rewrite/syntax_tree.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {
namespace {

constexpr base::SqlState kTooComplex{"54001"};

size_t BeginOf(const TokenList& tokens, StatementRange range) { return tokens[range.begin].begin; }

std::string_view TextOf(std::string_view sql, const TokenList& tokens, StatementRange range) {
  const size_t begin = BeginOf(tokens, range);
  return sql.substr(begin, tokens[range.end - 1].end - begin);
}

/// `sql` with the clauses overwritten by spaces, so that every offset stays what it was.
std::string WithoutClauses(std::string_view sql, const TokenList& tokens,
                           const std::vector<Clause>& clauses) {
  std::string blank(sql);
  for (const Clause& clause : clauses) {
    const size_t begin = tokens[clause.tokens.begin].begin;
    const size_t end = tokens[clause.tokens.end - 1].end;
    blank.replace(begin, end - begin, end - begin, ' ');
  }
  return blank;
}

/// A name's parts as the client wrote them, without blanks and comments between, in a spelling that
/// to_regclass() reads: it knows no U&"…".
std::string RegclassText(std::string_view sql, Bytes written,
                         const std::vector<std::string>& name) {
  const TokenList tokens(sql.substr(written.begin, written.end - written.begin));
  std::string text;
  size_t at = 0;
  for (const std::string& part : name) {
    if (!text.empty()) text += '.';
    text += tokens.IsKind(at, TokenKind::kUnicodeName) ? base::QuoteIdentifier(part)
                                                       : std::string(tokens.Text(at));
    at = tokens.PastName(at) + 1;
  }
  return text;
}

Statement::Reference ReferenceTo(std::string_view sql, Bytes written,
                                 const std::vector<std::string>& name) {
  Statement::Reference reference;
  reference.name = RegclassText(sql, written, name);
  for (const std::string& part : name) {
    reference.display += (reference.display.empty() ? "" : ".") + part;
  }
  reference.client_offset = written.begin;
  return reference;
}

Plan::TemporalReference ReadInstants(std::string_view sql, const TokenList& tokens,
                                     BoundClause bound) {
  Plan::TemporalReference temporal{std::move(bound), {}, {}};
  const Clause& clause = temporal.bound.clause;
  for (const Clause::Span span : clause.instants) {
    Instant& instant = temporal.instants.emplace_back(ReadInstant(sql, tokens, span, clause.axis));
    for (ColumnReference& column : instant.columns) column.level = temporal.bound.table.level;
  }
  temporal.evaluable.resize(temporal.instants.size());
  return temporal;
}

/// The place of `text` in `texts`, appended if it is new.
size_t PlaceOf(std::vector<std::string>& texts, std::string text) {
  const auto found = std::ranges::find(texts, text);
  const auto place = static_cast<size_t>(found - texts.begin());
  if (found == texts.end()) texts.push_back(std::move(text));
  return place;
}

/// The plan of one text, gathered statement by statement.
class Analysis {
 public:
  Analysis(std::string_view sql, const TokenList& tokens, const Scope& scope)
      : sql_(sql), tokens_(tokens) {
    plan.client = sql;
    plan.pins = scope.pins;
  }

  void Add(StatementRange range) {
    plan.statements.push_back({.begin = BeginOf(tokens_, range)});
    if (const auto name = ExecutedBy(tokens_, range)) {
      plan.statements.back().kind = StatementKind::kExecute;
      plan.statements.back().executes = *name;
      PlaceOf(executed, *name);
      executes = true;
      return;
    }
    begins = begins || BeginsTransaction(tokens_, range);
    const bool clauses = MayHoldClause(tokens_, range);
    const bool too_deep = IsTooDeep(tokens_, range);
    if (!clauses && tokens_.IsWord(range.begin, "copy") && !too_deep && AddCopy(range)) return;
    if (clauses || plan.pins || HoldsOnly(tokens_, range)) AddQuery(range, clauses, too_deep);
  }

  /// Called once all statements are in, if there was only one.
  void OfferEvaluation() {
    if (!runs_at_once_) return;
    for (Plan::Entry& entry : plan.entries) {
      if (!entry.temporal || entry.temporal->bound.clause.axis == Axis::kSourcePosition) continue;
      for (size_t i = 0; i < entry.temporal->instants.size(); ++i) {
        const Instant& instant = entry.temporal->instants[i];
        if (instant.kind != InstantKind::kStable) continue;
        entry.temporal->evaluable[i] = PlaceOf(
            evaluable, std::string(sql_.substr(instant.begin, instant.end - instant.begin)));
      }
    }
  }

  /// True when a pinned session must not simply run it.
  bool ConcernsPins() const {
    return plan.pins &&
           (!calls.empty() || executes || begins ||
            std::ranges::any_of(plan.statements, [](const Plan::Part& part) {
              return part.unreadable || !part.pinned.write.empty() ||
                     !part.pinned.unpinnable.empty();
            }));
  }

  Plan plan;
  std::vector<Statement::Reference> references;
  std::vector<std::string> evaluable, calls, executed;
  bool executes = false, begins = false;

 private:
  void AddQuery(StatementRange range, bool may_hold_clause, bool too_deep) {
    const size_t offset = BeginOf(tokens_, range);
    if (too_deep) {
      const auto error = Complaint(kTooComplex,
                                   may_hold_clause
                                       ? "statement with a temporal clause is too complex"
                                       : "statement is too complex to be pinned to the past",
                                   sql_, offset);
      if (may_hold_clause) throw error;
      plan.statements.back().unreadable = error;
      return;
    }
    std::vector<Clause> clauses;
    // What PostgreSQL understands means what it means there.
    Parsed parsed = Parse(TextOf(sql_, tokens_, range));
    if (!parsed.tree && may_hold_clause) {
      clauses = FindClauses(tokens_, range);
      parsed = Parse(TextOf(WithoutClauses(sql_, tokens_, clauses), tokens_, range));
      if (!parsed.tree) throw AsPostgresRefuses(parsed, range);
    }
    if (!parsed.tree) {
      plan.statements.back().unreadable = AsPostgresRefuses(parsed, range);
      return;
    }
    const auto& trees = parsed.tree->at("stmts");
    if (trees.empty()) {
      if (!clauses.empty()) RefuseMisplaced(sql_, tokens_, range, clauses.front());
      return;
    }
    AddTree(range, trees.at(0).at("stmt"), clauses);
  }

  void AddTree(StatementRange range, const nlohmann::json& tree,
               const std::vector<Clause>& clauses) {
    References found = FindReferences(tree, BeginOf(tokens_, range), plan.levels);
    std::ranges::move(found.columns, std::back_inserter(plan.columns));
    for (BoundClause& bound : BindClauses(sql_, tokens_, range, clauses, found)) {
      AddClause(std::move(bound));
    }
    for (BoundTable& bound : BindTables(sql_, tokens_, range, clauses, found)) {
      if (plan.pins || !bound.only.empty()) AddPlain(std::move(bound));
    }
    Plan::Part& part = plan.statements.back();
    part.kind = KindOf(tree);
    runs_at_once_ = RunsAtOnce(tree);
    if (!plan.pins) return;
    part.pinned = ReadPinnedStatement(tree, tokens_, range);
    for (std::string& call : found.calls) PlaceOf(calls, std::move(call));
  }

  void AddClause(BoundClause bound) {
    references.push_back(ReferenceTo(sql_, bound.name, bound.table.name));
    auto temporal = ReadInstants(sql_, tokens_, std::move(bound));
    for (const Instant& instant : temporal.instants) {
      for (const Instant::Call& call : instant.calls) {
        PlaceOf(references.back().functions, call.name);
      }
      std::ranges::copy(instant.columns, std::back_inserter(plan.columns));
    }
    plan.entries.push_back({.temporal = std::move(temporal), .plain = {}, .copy = {},
                            .statement = plan.statements.size() - 1});
  }

  void AddPlain(BoundTable bound) {
    references.push_back(ReferenceTo(sql_, bound.name, bound.table.name));
    references.back().use = Statement::Reference::Use::kPlain;
    plan.entries.push_back({.temporal = {}, .plain = std::move(bound), .copy = {},
                            .statement = plan.statements.size() - 1});
  }

  bool AddCopy(StatementRange range) {
    auto copy = ReadCopyOfTable(sql_, tokens_, range);
    if (!copy) return false;
    references.push_back(ReferenceTo(sql_, copy->written, copy->name));
    references.back().use = Statement::Reference::Use::kCopy;
    BoundTable table;
    table.table = {.offset = copy->written.begin, .name = copy->name, .reads = true};
    table.whole = table.name = copy->written;
    plan.entries.push_back({.temporal = {}, .plain = std::move(table),
                            .copy = std::move(copy->edits),
                            .statement = plan.statements.size() - 1});
    return true;
  }

  base::Error AsPostgresRefuses(const Parsed& parsed, StatementRange range) const {
    const size_t offset = BeginOf(tokens_, range) + parsed.offset;
    // Past the statement's last token stands its semicolon, or nothing.
    if (offset >= tokens_[range.end - 1].end) return tokens_.SyntaxError(range.end);
    return Complaint(base::kSyntaxError, parsed.message, sql_, offset);
  }

  const std::string_view sql_;
  const TokenList& tokens_;
  bool runs_at_once_ = false;
};

}  // namespace

std::string FoldedName(std::string_view written) {
  std::string name;
  const bool quoted = !written.empty() && written.front() == '"';
  for (size_t i = quoted ? 1 : 0; i + (quoted ? 1 : 0) < written.size(); ++i) {
    const char c = written[i];
    if (quoted && c == '"') ++i;  // a doubled one
    name += quoted || c < 'A' || c > 'Z' ? c : static_cast<char>(c + ('a' - 'A'));
  }
  return name;
}

std::optional<std::string> FindPrepare(std::string_view sql, std::string_view name) {
  const TokenList tokens(sql);
  std::optional<std::string> found;  // the last one counts
  for (const StatementRange range : SplitStatements(tokens)) {
    if (!tokens.IsWord(range.begin, "prepare")) continue;
    const bool same = FoldedName(tokens.Text(range.begin + 1)) == FoldedName(name);
    if (same) found = TextOf(sql, tokens, range);
  }
  return found;
}

std::vector<std::string> PreparedNames(std::string_view sql) {
  std::vector<std::string> names;
  const TokenList tokens(sql);
  for (const StatementRange range : SplitStatements(tokens)) {
    if (tokens.IsWord(range.begin, "prepare")) names.emplace_back(tokens.Text(range.begin + 1));
  }
  return names;
}

std::optional<Statement> Statement::Analyze(std::string_view sql, const Scope& scope) {
  if (!MayConcern(sql, scope) || sql.find('\0') != std::string_view::npos) return std::nullopt;
  const TokenList tokens(sql);
  const std::vector<StatementRange> statements = SplitStatements(tokens);
  if (tokens.lexical_error()) {
    // The server would complain of the clause, which comes first, and not of what is wrong.
    const auto holds = [&](StatementRange range) { return BeginsClause(tokens, range); };
    if (std::ranges::none_of(statements, holds)) return std::nullopt;
    throw Complaint(base::kSyntaxError, tokens.lexical_error()->message, sql,
                    tokens.lexical_error()->offset);
  }
  Analysis analysis(sql, tokens, scope);
  for (const StatementRange range : statements) analysis.Add(range);
  if (analysis.references.empty() && !(analysis.executes && scope.executes) &&
      !analysis.ConcernsPins()) {
    return std::nullopt;
  }
  if (statements.size() == 1) analysis.OfferEvaluation();
  Statement statement;
  statement.references_ = std::move(analysis.references);
  statement.evaluable_instants_ = std::move(analysis.evaluable);
  statement.calls_ = std::move(analysis.calls);
  statement.executed_ = std::move(analysis.executed);
  statement.plan_ = std::make_shared<const Plan>(std::move(analysis.plan));
  return statement;
}

}  // namespace tidemark::rewrite
