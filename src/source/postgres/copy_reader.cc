#include "source/postgres/copy_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/identifier.h"
#include "columnar/type_oid.h"

namespace tidemark::source {

namespace {

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(1);
constexpr std::chrono::milliseconds kCancelLimit = std::chrono::seconds(10);
constexpr int kChunksPerCheck = 256;

std::vector<columnar::PostgresColumn> SentColumns(const RelationShape& shape) {
  std::vector<columnar::PostgresColumn> sent;
  for (const ShapeColumn& column : shape.columns) {
    sent.push_back(column.as_text ? columnar::PostgresColumn{.name = column.column.name,
                                                             .type = columnar::kText,
                                                             .type_sql = "text"}
                                  : column.column);
  }
  return sent;
}

}  // namespace

std::unique_ptr<pg::Transaction> BeginRead(pg::Connection& connection,
                                           const std::string& snapshot) {
  auto transaction = std::make_unique<pg::Transaction>(connection, kBegin);
  if (!snapshot.empty()) {
    connection.Execute("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(snapshot));
  }
  return transaction;
}

void HoldColumns(pg::Connection& connection, const pg::Relation& relation) {
  if (std::string_view("rpv").find(relation.kind) != std::string_view::npos) {
    connection.Execute("SAVEPOINT tidemark_hold");
    try {
      connection.Execute("LOCK TABLE " + relation.name.Quoted() + " IN ACCESS SHARE MODE");
    } catch (const base::Error& error) {
      if (error.state() != base::kInsufficientPrivilege) throw;
      connection.Execute("ROLLBACK TO SAVEPOINT tidemark_hold");
    }
    connection.Execute("RELEASE SAVEPOINT tidemark_hold");
  }
  const auto now = pg::LoadRelations(connection, std::span(&relation.oid, 1));
  const bool same = !now.empty() && now.front().name == relation.name &&
                    std::ranges::equal(now.front().columns, relation.columns,
                                       [](const pg::Column& a, const pg::Column& b) {
                                         return a.number == b.number && a.name == b.name &&
                                                a.type == b.type && a.modifier == b.modifier;
                                       });
  if (same) return;
  throw base::Error(base::kSerializationFailure,
                    fmt::format("{} was just changing at its source", relation.name.Display()))
      .Hint("Capture it again.");
}

CopyReader::CopyReader(std::shared_ptr<pg::Connection> connection,
                       std::unique_ptr<pg::Transaction> transaction, CopyShape shape,
                       const std::string& tail, Position position, const ReadOptions& options)
    : connection_(std::move(connection)),
      transaction_(std::move(transaction)),
      shape_(std::move(shape.shape)),
      position_(std::move(position)),
      first_ordinal_(options.first_ordinal),
      next_first_(options.first_ordinal),
      batches_(SentColumns(shape_), options.limits, options.first_ordinal) {
  if (tail.empty()) {
    end_ = End{position_, 0};
    return;
  }
  const std::string sql =
      fmt::format("COPY (SELECT {} {}) TO STDOUT (FORMAT binary)", shape.select_list, tail);
  copy_ = std::make_unique<pg::CopyOut>(*connection_, sql);
}

CopyReader::~CopyReader() {
  if (!copy_) return;
  // Cut short: the server is told to cancel and the line is read empty, so that the connection can
  // be used again; not under the limit that has just ended the read.
  connection_->SetLimits(kCancelLimit, {});
}

Step CopyReader::Next(const Limit& limit) {
  if (error_) throw *error_;
  if (end_) return *end_;
  try {
    return Pull(limit);
  } catch (const base::Error& error) {
    error_ = error;
    throw;
  }
}

Step CopyReader::Pull(const Limit& limit) {
  limit.Check();
  connection_->SetLimits(
      std::max(limit.deadline.left(kLongestWait), std::chrono::milliseconds(1)), limit.stop);
  for (int chunks = 1;; ++chunks) {
    // Rows that keep coming never make CopyOut wait, so it would not notice a stop by itself.
    if (chunks % kChunksPerCheck == 0) limit.Check();
    switch (batches_.Next()) {
      case columnar::BatchReader::Step::kBatch: {
        const int64_t first = std::exchange(next_first_, batches_.next_ordinal());
        return Batch{batches_.TakeBatch(), first};
      }
      case columnar::BatchReader::Step::kEnd:
        // The trailer was read; the server must still say that the copy succeeded.
        while (copy_->Next()) {
        }
        return Finish();
      case columnar::BatchReader::Step::kNeedMore:
        break;
    }
    const auto chunk = copy_->Next();
    if (!chunk) {
      batches_.ExpectEnd();
      return Finish();
    }
    batches_.Feed(*chunk);
  }
}

Step CopyReader::Finish() {
  copy_.reset();
  std::move(*transaction_).Commit();
  end_ = End{std::move(position_), batches_.next_ordinal() - first_ordinal_};
  return *end_;
}

}  // namespace tidemark::source
