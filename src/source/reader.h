// One interface for everything that rows come from: a declared relation of a source, described and
// checked before it is read, then pulled as bounded Arrow batches. Knows no store and no schedule.
// A relation and its readers belong to one thread; a reader must not outlive its relation, and one
// is open at a time. Every wait takes a deadline and a stop token: 57014 when either ends it.
//
//   SourceRelation ──Describe──► RelationShape        nothing is read; what has no type is refused
//        │          ──Check────► Problems             what `tidemark check` shows
//        └── ReadAll, ReadSince ──► Reader ──Next──► Batch, Batch, … ──► End with its Position
//                                              └── an error at any step: never an End after it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "columnar/batch_reader.h"
#include "columnar/field_type.h"
#include "pg/relation.h"
#include "source/problem.h"

namespace arrow {
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::source {

/// What bounds one call.
struct Limit {
  base::Deadline deadline = base::Deadline::Never();
  std::stop_token stop;

  /// Throws 57014 once the deadline has passed or a stop was requested.
  void Check() const;
};

/// One column as it is read and as what it will be kept.
struct ShapeColumn {
  /// The PostgreSQL column; type_sql is never empty. The OIDs of user-defined types are the source
  /// server's: RelationShape::types describes them.
  columnar::PostgresColumn column;
  std::string source_type;  // as the source names it
  bool nullable = true;
  /// The batches hold the value's text form, to be cast to column.type_sql: its type has no binary
  /// form at the source.
  bool as_text = false;
};

struct RelationShape {
  std::vector<ShapeColumn> columns;
  /// Of every batch: `_ordinal`, then a field for each column, in order.
  std::shared_ptr<arrow::Schema> schema;
  /// PostgreSQL sources: the columns' types and what those need, each after its parts.
  std::vector<pg::Type> types;
};

/// One thing that the source says about where it was read; becomes evidence.
struct Fact {
  std::string name, value;
  bool operator==(const Fact&) const = default;
};

/// Where a cursor goes on: after the row with these values, each the source's own exact text.
struct CursorPosition {
  std::string cursor;
  std::vector<std::string> key;  // in the order of the declared key
  bool operator==(const CursorPosition&) const = default;
};

struct Position {
  std::vector<Fact> facts;
  /// ReadSince: from where the next one must go on. Empty when nothing was ever read.
  std::optional<CursorPosition> resume;
  /// ReadSince: false when transactions that may still commit lower values did not end in time;
  /// `resume` then is where this read began.
  bool settled = true;

  /// The value of the fact `name`; empty if there is none.
  std::string Find(const std::string& name) const;
};

struct Batch {
  std::shared_ptr<arrow::RecordBatch> rows;  // never empty
  int64_t first_ordinal = 0;
};

/// The relation was read successfully to its end.
struct End {
  Position position;
  int64_t rows = 0;
};

using Step = std::variant<Batch, End>;

class Reader {
 public:
  virtual ~Reader() = default;

  /// What is being read; the same for all batches of this reader.
  virtual const RelationShape& shape() const = 0;

  /// The next rows, or the end; again the same End afterwards. Throws the source's error with its
  /// SQLSTATE, 55000 when what is read has changed meanwhile, 57014 as Limit says. After an error
  /// every further call throws it again.
  virtual Step Next(const Limit& limit) = 0;
};

struct ReadOptions {
  columnar::BatchLimits limits;
  int64_t first_ordinal = 1;
};

/// The cursor strategy of an append-only relation.
struct CursorPlan {
  std::string cursor;
  std::vector<std::string> key;
  std::optional<CursorPosition> after;  // none: from the beginning
  /// How much before `after` is read again, in the cursor's own terms ("1000", "5 minutes"): for
  /// sources that cannot tell which transactions are running. Empty: nothing.
  std::string overlap;
  /// How long running transactions are waited for before the rows are read unsettled.
  std::chrono::milliseconds settle_limit = std::chrono::seconds(30);
};

/// What a dataset declares about the relation.
struct Declaration {
  std::vector<std::string> key;
  std::string cursor;  // empty: no cursor strategy
};

class SourceRelation {
 public:
  virtual ~SourceRelation() = default;

  /// As people read it, for messages: "public.audit", "exports/prices-*.parquet".
  virtual std::string Display() const = 0;

  /// What the relation looks like now; reads no row where the source can tell without. Throws 42P01
  /// when it does not exist, 0A000 when columns have no type in PostgreSQL, all of them named.
  virtual RelationShape Describe(const Limit& limit) = 0;

  /// What is wrong with the declaration. A missing relation or a column that cannot be mapped is a
  /// problem, not an error; a source that cannot be reached is an error.
  virtual std::vector<Problem> Check(const Declaration& declaration, const Limit& limit) = 0;

  /// Reads the complete relation as it stands at one moment, in no particular order.
  virtual std::unique_ptr<Reader> ReadAll(const ReadOptions& options, const Limit& limit) = 0;

  /// Reads what lies after plan.after, ordered by (cursor, key). Throws 0A000 where the source has
  /// no cursor strategy, 42703 for an unknown column, 22004 for rows without a cursor value, naming
  /// their number, 55000 when the greatest value lies before plan.after.
  virtual std::unique_ptr<Reader> ReadSince(const CursorPlan& plan, const ReadOptions& options,
                                            const Limit& limit) = 0;
};

/// Problems of `declaration` that the columns alone show: key and cursor columns that do not exist.
std::vector<Problem> CheckColumns(const std::string& relation, const RelationShape& shape,
                                  const Declaration& declaration);

/// One error for all columns that have no type, each with its reason; nothing if there are none.
void RefuseColumns(const std::string& relation, const std::vector<std::string>& reasons);

}  // namespace tidemark::source
