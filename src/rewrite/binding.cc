#include "rewrite/binding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rewrite/complaint.h"

namespace tidemark::rewrite {
namespace {

/// Reads on from one table's name to the end of its alias, and takes the clauses on the way.
class Binder {
 public:
  Binder(std::string_view sql, const TokenList& tokens, StatementRange range,
         const std::vector<Clause>& clauses)
      : sql_(sql), tokens_(tokens), range_(range), clauses_(clauses) {}

  /// `clause` is filled in only if one stands on the table.
  BoundClause Bind(const TableReference& table) {
    BoundClause bound;
    bound.table = table;
    taken_.reset();
    at_ = tokens_.IndexAt(table.offset);
    size_t begin = at_;
    PassName(table.name.size());
    bound.name = {table.offset, End()};
    const bool bracket = begin >= range_.begin + 2 && tokens_.IsPunctuation(begin - 1, '(') &&
                         tokens_.IsWord(begin - 2, "only");
    if (bracket) {
      bound.only = {At(begin - 2), At(begin - 1)};
      begin -= 2;
    } else if (begin > range_.begin && tokens_.IsWord(begin - 1, "only")) {
      bound.only = {At(--begin)};
    }
    TakeClauses();
    if (bracket && tokens_.IsPunctuation(at_, ')')) bound.only.push_back(At(at_++));
    if (tokens_.IsPunctuation(at_, '*')) ++at_;
    TakeClauses();
    if (table.has_alias) {
      const size_t alias = at_;
      PassAlias();
      bound.alias = {tokens_[alias].begin, End()};
    }
    TakeClauses();
    if (table.sample_offset) bound.sample = TakeSample();
    if (taken_) bound.clause = clauses_[*taken_];
    bound.whole = {tokens_[begin].begin, End()};
    if (begin > range_.begin && tokens_.IsWord(begin - 1, "table")) {
      bound.table_command = At(begin - 1);
    }
    return bound;
  }
  /// Whether the table last bound carries a clause.
  bool took_clause() const { return taken_.has_value(); }

 private:
  size_t End() const { return tokens_[at_ - 1].end; }
  Bytes At(size_t token) const { return {tokens_[token].begin, tokens_[token].end}; }

  void PassName(size_t parts) {
    at_ = tokens_.PastName(at_);
    for (; parts > 1 && tokens_.IsPunctuation(at_, '.'); --parts) at_ = tokens_.PastName(at_ + 1);
    at_ = std::min(at_, range_.end);
  }

  void PassAlias() {
    if (tokens_.IsWord(at_, "as")) ++at_;
    at_ = std::min(tokens_.PastName(at_), range_.end);
    if (!tokens_.IsPunctuation(at_, '(')) return;
    if (const auto past = tokens_.PastBracket(at_, range_.end)) at_ = *past;
  }

  /// What stands between the brackets at `at_`, which is moved past them.
  Bytes TakeBracket() {
    const size_t open = at_;
    at_ = tokens_.PastBracket(open, range_.end).value_or(range_.end);
    return {tokens_[open].end, tokens_[at_ - 1].begin};
  }

  std::optional<BoundTable::Sample> TakeSample() {
    if (!tokens_.IsWord(at_, "tablesample")) return std::nullopt;
    BoundTable::Sample sample{.method = tokens_.Text(at_ + 1), .arguments = {}, .seed = {}};
    at_ += 2;
    for (; tokens_.IsPunctuation(at_, '.'); at_ += 2) sample.method = tokens_.Text(at_ + 1);
    sample.arguments = TakeBracket();
    if (tokens_.IsWord(at_, "repeatable")) {
      ++at_;
      sample.seed = TakeBracket();
    }
    return sample;
  }

  void TakeClauses() {
    while (true) {
      const auto here = std::ranges::find(clauses_, at_,
                                          [](const Clause& clause) { return clause.tokens.begin; });
      if (here == clauses_.end()) return;
      if (taken_) {
        throw Complaint(base::kSyntaxError,
                        "only one temporal clause is allowed on a table reference", sql_,
                        tokens_[here->tokens.begin].begin);
      }
      taken_ = static_cast<size_t>(here - clauses_.begin());
      at_ = here->tokens.end;
    }
  }

  const std::string_view sql_;
  const TokenList& tokens_;
  const StatementRange range_;
  const std::vector<Clause>& clauses_;
  size_t at_ = 0;
  std::optional<size_t> taken_;
};

void RefuseOnTarget(std::string_view sql, const TokenList& tokens, const BoundClause& bound) {
  const std::string& words = std::string(WordsOf(bound.clause.axis));
  const std::string_view command = bound.table.target_of;
  if (command.empty()) tokens.ThrowSyntaxError(bound.clause.tokens.begin);
  if (command == "COPY") {
    throw Complaint(base::kSyntaxError, words + " is not allowed on the table of COPY", sql,
                    bound.name.begin)
        .Hint("Write COPY (SELECT … FROM … " + words + " …) TO.");
  }
  throw Complaint(base::kSyntaxError,
                  words + " is not allowed on the target of " + std::string(command), sql,
                  bound.name.begin);
}

void RefuseUnsuitable(std::string_view sql, const TokenList& tokens, const BoundClause& bound) {
  const std::string words(WordsOf(bound.clause.axis));
  if (!bound.table.reads) RefuseOnTarget(sql, tokens, bound);
  if (bound.table.is_cte) {
    throw Complaint(base::kFeatureNotSupported,
                    words + " is not allowed on CTE \"" + bound.table.name.back() + '"', sql,
                    bound.name.begin);
  }
  if (bound.table.sample_offset) {
    const size_t method = tokens.IndexAt(*bound.table.sample_offset);
    throw Complaint(base::kFeatureNotSupported, "TABLESAMPLE is not allowed with " + words, sql,
                    tokens[method - 1].begin);
  }
}

/// The FOR of a row lock that follows token `at`, at its level of brackets or further out.
size_t FindLock(const TokenList& tokens, size_t at, size_t end) {
  size_t depth = 0;
  for (size_t i = at; i < end; ++i) {
    if (tokens.IsPunctuation(i, '(')) ++depth;
    if (tokens.IsPunctuation(i, ')') && depth > 0) --depth;
    const bool lock = tokens.IsWord(i, "for") &&
                      (tokens.IsWord(i + 1, "update") || tokens.IsWord(i + 1, "share") ||
                       tokens.IsWord(i + 1, "no") || tokens.IsWord(i + 1, "key"));
    if (lock && depth == 0) return i;
  }
  return at - 1;
}

void RefuseLocked(std::string_view sql, const TokenList& tokens, StatementRange range,
                  const BoundClause& bound, const RowLock& lock) {
  size_t at = 0;
  if (lock.offset) {
    at = tokens.IndexAt(*lock.offset);
    while (at > range.begin && !tokens.IsWord(at, "for")) --at;
  } else {
    at = FindLock(tokens, bound.clause.tokens.end, range.end);
  }
  throw Complaint(
      base::kFeatureNotSupported,
      std::string(lock.words) + " is not allowed with " + std::string(WordsOf(bound.clause.axis)),
      sql, tokens[at].begin);
}

}  // namespace

std::vector<BoundClause> BindClauses(std::string_view sql, const TokenList& tokens,
                                     StatementRange range, const std::vector<Clause>& clauses,
                                     const References& references) {
  Binder binder(sql, tokens, range, clauses);
  std::vector<BoundClause> bound;
  std::vector<std::optional<size_t>> bound_of(references.tables.size());
  for (size_t i = 0; i < references.tables.size(); ++i) {
    auto clause = binder.Bind(references.tables[i]);
    if (!binder.took_clause()) continue;
    bound_of[i] = bound.size();
    bound.push_back(std::move(clause));
  }
  for (const Clause& clause : clauses) {
    const auto stands = [&](const BoundClause& b) {
      return b.clause.tokens.begin == clause.tokens.begin;
    };
    const auto on = std::ranges::find_if(bound, stands);
    if (on == bound.end()) RefuseMisplaced(sql, tokens, range, clause);
    RefuseUnsuitable(sql, tokens, *on);
  }
  for (const RowLock& lock : references.locks) {
    for (size_t table : lock.tables) {
      if (bound_of[table]) RefuseLocked(sql, tokens, range, bound[*bound_of[table]], lock);
    }
  }
  std::ranges::sort(bound, {}, [](const BoundClause& b) { return b.whole.begin; });
  return bound;
}

std::vector<BoundTable> BindTables(std::string_view sql, const TokenList& tokens,
                                   StatementRange range, const std::vector<Clause>& clauses,
                                   const References& references) {
  Binder binder(sql, tokens, range, clauses);
  std::vector<BoundTable> bound;
  for (const TableReference& table : references.tables) {
    if (!table.reads || table.is_cte) continue;
    BoundTable here = binder.Bind(table);
    if (!binder.took_clause()) bound.push_back(std::move(here));
  }
  std::ranges::sort(bound, {}, [](const BoundTable& b) { return b.whole.begin; });
  return bound;
}

}  // namespace tidemark::rewrite
