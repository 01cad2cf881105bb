// The SQL that reads one table reference at an instant: a function call of the schema tidemark in
// the place of the name, and the view's definition in the place of a view.
//   AS OF      tidemark.as_of_tx(NULL::Q, tidemark.tx_at('Q'::regclass, instant))
//   AS OF      LATERAL (SELECT f.* FROM (SELECT tidemark.tx_at(…) AS x OFFSET 0) AS w,
//              tidemark.as_of_tx(NULL::Q, w.x) AS f) when the instant refers to columns: tx_at is
//              called once for each of their rows
//   AS OF      tidemark.as_of_tx_once(…) when the instant is no constant of the plan
//   the rest   tidemark.versions(NULL::Q, axis, form, a, b)
//   pinned     tidemark.as_of_tx(NULL::Q, tx), or as_of_tx_once with tidemark.pinned_tx('Q')
//   ONLY, COPY tidemark.only_rows(NULL::Q), only_as_of_tx and only_as_of_tx_once, where others inherit
//              from the table
// Under a snapshot token no tx passes its own: least(tx, cap), and versions_until(…, cap).
#pragma once

#include <string>

#include "rewrite/edit.h"
#include "rewrite/plan.h"
#include "rewrite/statement.h"

namespace tidemark::rewrite {

/// What the edits of one statement depend on beside the reference itself.
struct ReadingContext {
  const Plan& plan;
  const Facts& facts;
  bool at_execution = false;  // the pin may change before the statement runs
};

/// A reference with a clause. Throws 0A000 for a clause that cannot be pushed into a view.
Edit EditOfClause(const ReadingContext& context, const Plan::TemporalReference& temporal,
                  const Resolution& resolution);

/// A reference without one, in a pinned session; `own`: without the rows of tables that inherit
/// from it. Throws 0A000 for what cannot be pinned.
Edit EditOfPinned(const ReadingContext& context, const BoundTable& bound,
                  const Resolution& resolution, bool own);

/// The newest rows of a table itself, without those of tables that inherit from it.
Edit EditOfOwnRows(const ReadingContext& context, const BoundTable& bound,
                   const Resolution& resolution);

/// The rows of TABLESAMPLE of `from`, which is no table; throws 0A000 for an unknown method.
std::string SampleOf(const ReadingContext& context, const BoundTable& bound,
                     const std::string& from);

}  // namespace tidemark::rewrite
