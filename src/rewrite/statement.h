// A client's SQL text with temporal clauses, and what it becomes. Pure: no connection, no catalog.
// Analyze finds the clauses and the names they stand on; the caller has the store resolve the
// names; Render writes PostgreSQL's own SQL and a map back to the client's text. Follows
// temporal-sql.md, sections 1 and 3. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/identifier.h"

namespace tidemark::rewrite {

/// What the session did before that decides what concerns the rewriter.
struct Scope {
  bool executes = false;  // SQL's EXECUTE may run a query that needs settling
};

/// False only when `sql` certainly holds nothing the rewriter touches (temporal clauses, COPY of a
/// table TO, EXECUTE where it matters). Costs one scan for a few words; a false positive costs one
/// Analyze.
bool MayConcern(std::string_view sql, const Scope& scope = {});

/// What the store's catalog says of one reference's name.
struct Resolution {
  enum class Kind { kMissing, kNotVersioned, kView, kVersioned };
  Kind kind = Kind::kMissing;
  base::QualifiedName name;       // the relation found, empty when missing
  std::string volatile_function;  // the first volatile function of the instant, empty if none
};

/// Positions in the rewritten text to positions in the client's; both count characters from 1.
class PositionMap {
 public:
  struct Piece {
    size_t rewritten_begin, rewritten_end;  // bytes
    size_t client_begin;                    // byte where it starts in the client's text
    bool verbatim;                          // same bytes in both, so offsets inside carry over
  };
  PositionMap(std::string client, std::string rewritten, std::vector<Piece> pieces);
  int ToClient(int rewritten_position) const;

 private:
  std::string client_, rewritten_;
  std::vector<Piece> pieces_;
};

struct Plan;  // what Analyze keeps for Render (plan.h)

struct Rewritten {
  std::string sql;
  PositionMap positions;
  /// True when an instant may lie after the snapshot that the statement would take (`$n`, now(), a
  /// literal of COPY, …): the session must then let a publish in flight finish
  /// (tidemark.settle()) before the statement begins.
  bool settles = false;
  /// Results of `sql`, counted from 0, that are not the client's: it settles by itself there.
  std::vector<size_t> hidden_results;
  /// It prepares, in SQL, a query that settles: see Scope::executes.
  bool prepares_settling = false;
  /// Where the only instant of the text stands, in characters from 1; 0 when there are more.
  int instant_position = 0;
};

class Statement {
 public:
  /// nullopt when there is nothing to rewrite (the words stood in strings, comments, quoted names).
  /// Throws base::Error with a position: 42601 for a malformed clause or two clauses on one
  /// reference, 0A000 for a clause on a CTE, sub-select or function, or with FOR UPDATE/SHARE,
  /// 22004 for a literal NULL instant, 42804 for a constant of another type, 54001 for a statement
  /// too deep to be parsed safely.
  static std::optional<Statement> Analyze(std::string_view sql, const Scope& scope = {});

  struct Reference {
    std::string name;                    // SQL text that to_regclass() reads, e.g. public."Orders"
    std::string display;                 // for messages
    size_t client_offset;                // byte offset of the name
    std::vector<std::string> functions;  // names called in its instants, as to_regproc() reads them
    bool copy = false;                   // COPY name TO, not a clause
  };
  const std::vector<Reference>& references() const { return references_; }

  /// Texts of instants that are neither literals, nor refer to parameters or columns, in a text of
  /// exactly one statement that runs at once (not PREPARE): evaluating them first as
  /// `SELECT (text)::timestamptz` and handing the results to Render makes them constants.
  const std::vector<std::string>& evaluable_instants() const { return evaluable_instants_; }

  /// `resolutions` are parallel to references(); `evaluated` to evaluable_instants(), or empty.
  /// Throws 42P01, 42809, 0A000 (view), 42P17 (volatile function) with positions.
  ///
  /// With `settles_inside` (simple protocol) a text of several statements, or an EXECUTE, settles
  /// by itself, right before each statement that has to: what came before may take its time, and
  /// now() is the time at which the whole text arrived.
  Rewritten Render(std::span<const Resolution> resolutions,
                   std::span<const std::string> evaluated = {}, bool settles_inside = false) const;

 private:
  Statement() = default;
  std::vector<Reference> references_;
  std::vector<std::string> evaluable_instants_;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace tidemark::rewrite
