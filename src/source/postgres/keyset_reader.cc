#include "source/postgres/keyset_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/identifier.h"
#include "columnar/type_oid.h"
#include "source/postgres/read_position.h"
#include "source/postgres/settle.h"

namespace tidemark::source {

namespace {

// The columns that order the relation: the cursor, then the key without it.
std::vector<const pg::Column*> OrderColumns(const pg::Relation& relation,
                                            const CursorPlan& plan) {
  std::vector<const pg::Column*> columns;
  const auto add = [&](const std::string& name) {
    const pg::Column* column = relation.Find(name);
    if (column == nullptr) {
      throw base::Error(base::kUndefinedColumn,
                        fmt::format("column \"{}\" of relation {} does not exist", name,
                                    relation.name.Display()));
    }
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
      columns.push_back(column);
    }
  };
  add(plan.cursor);
  for (const std::string& name : plan.key) add(name);
  return columns;
}

std::string List(const std::vector<const pg::Column*>& columns, std::string_view suffix,
                 std::string_view prefix = "") {
  std::string list;
  for (const pg::Column* column : columns) {
    if (!list.empty()) list += ", ";
    list += prefix;
    list += base::QuoteIdentifier(column->name);
    list += suffix;
  }
  return list;
}

// Values as literals of their columns' types.
std::string Literals(const std::vector<const pg::Column*>& columns,
                     const std::vector<std::string>& values) {
  std::string list;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) list += ", ";
    list += base::QuoteLiteral(values[i]) + "::" + columns[i]->type_sql;
    if (!columns[i]->collation.empty()) list += " COLLATE " + columns[i]->collation;
  }
  return list;
}

// A position as values of the order columns.
std::vector<std::string> Values(const std::vector<const pg::Column*>& columns,
                                const CursorPlan& plan, const CursorPosition& position) {
  if (position.key.size() != plan.key.size()) {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("a position with {} key values for {} key columns",
                                  position.key.size(), plan.key.size()));
  }
  std::vector<std::string> values{position.cursor};
  for (size_t i = 1; i < columns.size(); ++i) {
    const auto at = std::find(plan.key.begin(), plan.key.end(), columns[i]->name);
    values.push_back(position.key[static_cast<size_t>(at - plan.key.begin())]);
  }
  return values;
}

CursorPosition PositionOf(const std::vector<const pg::Column*>& columns, const CursorPlan& plan,
                          const pg::Result& row) {
  CursorPosition position{row.str(0, 0), {}};
  for (const std::string& name : plan.key) {
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](const pg::Column* c) { return c->name == name; });
    position.key.push_back(row.str(0, static_cast<int>(at - columns.begin())));
  }
  return position;
}

void RefuseNulls(pg::Connection& connection, const pg::Relation& relation,
                 const std::vector<const pg::Column*>& columns) {
  std::string condition;
  for (const pg::Column* column : columns) {
    if (column->not_null) continue;
    if (!condition.empty()) condition += " OR ";
    condition += base::QuoteIdentifier(column->name) + " IS NULL";
  }
  if (condition.empty()) return;
  const std::string count = connection.Value(fmt::format("SELECT count(*) FROM {} WHERE {}",
                                                         relation.name.Quoted(), condition));
  if (count == "0") return;
  throw base::Error(base::kNullValueNotAllowed,
                    fmt::format("{} rows of relation {} have NULL in a cursor or key column",
                                count, relation.name.Display()))
      .Detail(fmt::format("Columns: {}.", List(columns, "")))
      .Hint("Such rows have no place in the order. Give the column values and NOT NULL, or use "
            "strategy snapshot.");
}

// The cursor value `overlap` before `cursor`, as an SQL expression.
std::string Earlier(const pg::Column& column, const std::string& cursor,
                    const std::string& overlap) {
  const std::string value = base::QuoteLiteral(cursor) + "::" + column.type_sql;
  switch (column.type) {
    case columnar::kInt2:
    case columnar::kInt4:
    case columnar::kInt8:
    case columnar::kNumeric:
      return fmt::format("({} - {}::pg_catalog.numeric)", value, base::QuoteLiteral(overlap));
    case columnar::kDate:
    case columnar::kTimestamp:
    case columnar::kTimestamptz:
      return fmt::format("({} - {}::pg_catalog.interval)", value, base::QuoteLiteral(overlap));
    default:
      throw base::Error(base::kFeatureNotSupported,
                        fmt::format("cursor \"{}\" of type {} cannot have an overlap", column.name,
                                    column.type_sql));
  }
}

std::string LowerCondition(const std::vector<const pg::Column*>& columns, const CursorPlan& plan,
                           const std::vector<std::string>& after) {
  if (plan.overlap.empty()) {
    return fmt::format("({}) > ({})", List(columns, ""), Literals(columns, after));
  }
  return fmt::format("{} >= {}", base::QuoteIdentifier(plan.cursor),
                     Earlier(*columns[0], plan.after->cursor, plan.overlap));
}

void RefuseGoingBack(pg::Connection& connection, const pg::Relation& relation,
                     const std::vector<const pg::Column*>& columns, const CursorPlan& plan,
                     const CursorPosition& bound) {
  const std::string later = connection.Value(
      fmt::format("SELECT ({}) > ({})", Literals(columns, Values(columns, plan, *plan.after)),
                  Literals(columns, Values(columns, plan, bound))));
  if (later != "t") return;
  throw base::Error(base::kNotInPrerequisiteState,
                    fmt::format("cursor \"{}\" of relation {} went backwards", plan.cursor,
                                relation.name.Display()))
      .Detail(fmt::format("Its greatest value is {}, but it has been read up to {}.", bound.cursor,
                          plan.after->cursor))
      .Hint("Rows were deleted or the source was restored: capture the relation anew.");
}

}  // namespace

std::string CursorProblem(const pg::Relation& relation, const std::string& cursor) {
  const pg::Column* column = relation.Find(cursor);
  if (column == nullptr) return fmt::format("cursor column \"{}\" does not exist", cursor);
  switch (column->type) {
    case columnar::kJson:
      return fmt::format("cursor column \"{}\" of type {} has no order", cursor,
                         column->type_sql);
    default:
      return "";
  }
}

std::unique_ptr<Reader> ReadKeyset(const std::shared_ptr<pg::Connection>& shared,
                                   const pg::Relation& relation, const CursorPlan& plan,
                                   const ReadOptions& options, const Limit& limit) {
  pg::Connection& connection = *shared;
  const auto columns = OrderColumns(relation, plan);
  if (const std::string problem = CursorProblem(relation, plan.cursor); !problem.empty()) {
    throw base::Error(base::kFeatureNotSupported, problem);
  }

  // Qualified: a bare name would mean the output column, which is text.
  const std::string descending = List(columns, " DESC", "k.");
  const auto greatest = connection.Execute(
      fmt::format("SELECT {} FROM {} k WHERE ({}) IS NOT NULL ORDER BY {} LIMIT 1",
                  List(columns, "::pg_catalog.text"), relation.name.Quoted(), List(columns, ""),
                  descending));
  Position position;
  position.resume = plan.after;
  std::string tail;
  if (greatest.rows() == 1) {
    const CursorPosition bound = PositionOf(columns, plan, greatest);
    if (plan.after) RefuseGoingBack(connection, relation, columns, plan, bound);
    // On a standby the primary's transactions cannot be seen; only a declared overlap helps there.
    const bool standby = connection.Value("SELECT pg_catalog.pg_is_in_recovery()") == "t";
    position.settled =
        !standby && WaitUntilEnded(connection, RunningTransactions(connection), plan.settle_limit,
                                   limit);
    if (position.settled || !plan.overlap.empty()) position.resume = bound;
    tail = fmt::format("FROM {} k WHERE ({}) <= ({})", relation.name.Quoted(), List(columns, ""),
                       Literals(columns, Values(columns, plan, bound)));
    if (plan.after) {
      tail += " AND " + LowerCondition(columns, plan, Values(columns, plan, *plan.after));
    }
    tail += " ORDER BY " + List(columns, "", "k.");
    position.facts = {{"cursor", plan.cursor},
                      {"cursor_after", plan.after ? plan.after->cursor : ""},
                      {"cursor_to", bound.cursor}};
  } else {
    position.facts = {{"cursor", plan.cursor},
                      {"cursor_after", plan.after ? plan.after->cursor : ""},
                      {"cursor_to", plan.after ? plan.after->cursor : ""}};
  }
  position.facts.push_back({"settled", position.settled ? "true" : "false"});

  // The snapshot must be younger than the end of what was waited for.
  auto transaction = BeginRead(connection, "");
  HoldColumns(connection, relation);
  for (Fact& fact : LoadFacts(connection, relation)) position.facts.push_back(std::move(fact));
  RefuseNulls(connection, relation, columns);
  return std::make_unique<CopyReader>(shared, std::move(transaction),
                                      ShapeOf(connection, relation), tail, std::move(position),
                                      options);
}

}  // namespace tidemark::source
