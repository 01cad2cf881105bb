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
  bool pins = false;      // the session may be pinned: every statement that reads concerns us
};

/// False only when `sql` certainly holds nothing the rewriter touches (temporal clauses, COPY of a
/// table TO, ONLY, EXECUTE where it matters). Costs one scan for a few words; a false positive
/// costs one Analyze.
bool MayConcern(std::string_view sql, const Scope& scope = {});

/// True when running `sql` may set tidemark.as_of or its like: it names such a setting, or does
/// what cannot be seen through (DO, CALL). Costs one scan for a few words.
bool MayPin(std::string_view sql);

/// True when `sql` may hold a temporal clause or names tidemark: worth asking again whether the
/// store is Tidemark's by now.
bool NamesTemporal(std::string_view sql);

/// A relation of the store as the rewriter needs to know it.
struct Relation {
  enum class Kind {
    kMissing,
    kNotVersioned,
    kView,          // and not one of those below
    kMaterialized,  // a materialized view
    kHistory,       // S_history.T
    kPlane,         // a table that holds rows or row versions, read past its parent
    kVersioned
  };
  Kind kind = Kind::kMissing;
  base::QualifiedName name;                     // empty when missing
  std::optional<std::string> pinned_tx, cap_tx;  // of a versioned table or its history
  bool parent = false;  // a versioned table that shows rows of others, or did: ONLY means something
};

/// What the store's catalog says of one reference's name.
struct Resolution : Relation {
  std::string volatile_function;  // the first volatile function of the instant, empty if none
};

/// A relation that a view reads, directly or through another view.
struct ViewRelation : Relation {
  std::string definition;        // of a view, with qualified names
  std::string refused_function;  // one that it calls and that cannot be pinned, empty if none
};

/// What a statement must not do in a pinned session, for tidemark.obey(): empty for what it may.
struct Obedience {
  std::string write;       // the command, when it writes
  std::string unpinnable;  // why it cannot be read at an instant
};

/// A statement prepared in SQL that a text executes.
struct ExecutedStatement {
  std::string name;     // as the text writes it
  std::string prepare;  // with what it must be prepared anew first, empty when it need not be
  Obedience obedience;
};

/// What the caller has found out for Statement::Render.
struct Facts {
  std::span<const Resolution> resolutions;      // parallel to Statement::references()
  std::span<const std::string> evaluated = {};  // parallel to evaluable_instants(), or empty
  std::span<const ViewRelation> view_relations = {};  // of all of Statement::Views()
  bool pinned = false;                                // the session is, right now
  std::string refused_function = {};                  // among calls(), one that cannot be pinned
  std::span<const ExecutedStatement> executed = {};   // those of Statement::executed() that exist
  /// With it (simple protocol) a text of several statements, or an EXECUTE, settles by itself,
  /// right before each statement that has to: what came before may take its time, and now() is the
  /// time at which the whole text arrived.
  bool settles_inside = false;
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

/// A name as the catalog has it: an unquoted one in lower case.
std::string FoldedName(std::string_view written);

/// The PREPARE of `name`, as EXECUTE writes it, in a text of one or more statements; nullopt
/// without.
std::optional<std::string> FindPrepare(std::string_view sql, std::string_view name);

/// The names that a text's PREPAREs give, as written.
std::vector<std::string> PreparedNames(std::string_view sql);

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
  /// Of the PREPARE that it holds last.
  Obedience prepared;
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
    enum class Use { kClause, kCopy, kPlain };
    std::string name;                    // SQL text that to_regclass() reads, e.g. public."Orders"
    std::string display;                 // for messages
    size_t client_offset;                // byte offset of the name
    std::vector<std::string> functions;  // names called in its instants, as to_regproc() reads them
    Use use = Use::kClause;              // kCopy: COPY name TO; kPlain: read without a clause
  };
  const std::vector<Reference>& references() const { return references_; }

  /// Texts of instants that are neither literals, nor refer to parameters or columns, in a text of
  /// exactly one statement that runs at once (not PREPARE): evaluating them first as
  /// `SELECT (text)::timestamptz` and handing the results to Render makes them constants.
  const std::vector<std::string>& evaluable_instants() const { return evaluable_instants_; }

  /// With Scope::pins, the functions it calls, as parse_ident() reads them.
  const std::vector<std::string>& calls() const { return calls_; }

  /// With Scope::pins, names of SQL's prepared statements that it executes.
  const std::vector<std::string>& executed() const { return executed_; }

  /// The views whose definitions Render needs, as to_regclass() reads them.
  std::vector<std::string> Views(std::span<const Resolution> resolutions, bool pinned) const;

  /// Throws 42P01, 42809, 0A000 (what cannot be read at an instant), 42P17 (volatile function),
  /// 25006 (a write in a pinned session) with positions. Without anything to change, the text comes
  /// back as it is.
  Rewritten Render(const Facts& facts) const;

 private:
  Statement() = default;
  std::vector<Reference> references_;
  std::vector<std::string> evaluable_instants_, calls_, executed_;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace tidemark::rewrite
