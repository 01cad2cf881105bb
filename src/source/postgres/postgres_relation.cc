#include "source/postgres/postgres_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "source/postgres/copy_reader.h"
#include "source/postgres/keyset_reader.h"
#include "source/postgres/read_position.h"

namespace tidemark::source {

namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(1);

// Under these settings the text of a value is exact and the same in every session.
const std::vector<std::pair<std::string, std::string>>& ReadSettings() {
  static const std::vector<std::pair<std::string, std::string>> settings = {
      {"search_path", ""},           {"DateStyle", "ISO, YMD"},  {"TimeZone", "UTC"},
      {"IntervalStyle", "postgres"}, {"extra_float_digits", "3"}, {"bytea_output", "hex"}};
  return settings;
}

// Whether rows with one value of `columns` are at most one, as far as an index says.
bool KnownUnique(const pg::Relation& relation, std::vector<std::string> columns) {
  std::sort(columns.begin(), columns.end());
  return std::any_of(relation.indexes.begin(), relation.indexes.end(), [&](const pg::Index& index) {
    if (!index.unique || !index.valid || index.partial) return false;
    std::vector<std::string> indexed = index.columns;
    std::sort(indexed.begin(), indexed.end());
    // A subset of the key that is unique makes the key unique too.
    return std::includes(columns.begin(), columns.end(), indexed.begin(), indexed.end());
  });
}

class PostgresRelation final : public SourceRelation {
 public:
  explicit PostgresRelation(PostgresOptions options) : options_(std::move(options)) {}

  std::string Display() const override { return options_.relation; }

  RelationShape Describe(const Limit& limit) override {
    pg::Connection& connection = Connected(limit);
    const auto transaction = BeginRead(connection, "");
    return ShapeOf(connection, ResolveRelation(connection, options_.relation)).shape;
  }

  std::vector<Problem> Check(const Declaration& declaration, const Limit& limit) override {
    pg::Connection& connection = Connected(limit);
    try {
      const auto transaction = BeginRead(connection, "");
      return Look(connection, declaration);
    } catch (const base::Error& error) {
      if (error.IsTransient()) throw;
      return {{Severity::kRefusesTable, Display(), error.message(), error.hint(), error.state()}};
    }
  }

  std::unique_ptr<Reader> ReadAll(const ReadOptions& options, const Limit& limit) override {
    pg::Connection& connection = Connected(limit);
    const pg::Relation relation = ResolveRelation(connection, options_.relation);
    auto transaction = BeginRead(connection, options_.snapshot);
    HoldColumns(connection, relation);
    CopyShape shape = ShapeOf(connection, relation);
    Position position;
    position.facts = LoadFacts(connection, relation);
    if (!options_.snapshot.empty()) {
      position.facts.push_back({"exported_snapshot", options_.snapshot});
    }
    return std::make_unique<CopyReader>(connection_, std::move(transaction), std::move(shape),
                                        "FROM " + relation.name.Quoted(), std::move(position),
                                        options);
  }

  std::unique_ptr<Reader> ReadSince(const CursorPlan& plan, const ReadOptions& options,
                                    const Limit& limit) override {
    pg::Connection& connection = Connected(limit);
    const pg::Relation relation = ResolveRelation(connection, options_.relation);
    return ReadKeyset(connection_, relation, plan, options, limit);
  }

 private:
  pg::Connection& Connected(const Limit& limit) {
    limit.Check();
    if (!connection_ || !connection_->IsOpen() || connection_->InTransaction()) {
      connection_ = std::make_shared<pg::Connection>(pg::Connection::Open(
          {.dsn = options_.dsn, .timeouts = false, .settings = ReadSettings()}, limit.deadline,
          limit.stop));
    }
    connection_->SetLimits(
        std::max(limit.deadline.left(kLongestWait), std::chrono::milliseconds(1)), limit.stop);
    return *connection_;
  }

  std::vector<Problem> Look(pg::Connection& connection, const Declaration& declaration) {
    const pg::Relation relation = ResolveRelation(connection, options_.relation);
    std::vector<Problem> problems =
        CheckColumns(Display(), ShapeOf(connection, relation).shape, declaration);
    if (!problems.empty()) return problems;
    if (!declaration.key.empty() && !KnownUnique(relation, declaration.key)) {
      problems.push_back(
          {Severity::kNote, Display(),
           fmt::format("no unique index says that key ({}) is unique",
                       fmt::join(declaration.key, ", ")),
           "A capture that finds a duplicate is refused.", base::kInvalidObjectDefinition});
    }
    if (!declaration.cursor.empty()) CheckCursor(connection, relation, declaration, problems);
    return problems;
  }

  void CheckCursor(pg::Connection& connection, const pg::Relation& relation,
                   const Declaration& declaration, std::vector<Problem>& problems) {
    const std::string& cursor = declaration.cursor;
    if (const std::string what = CursorProblem(relation, cursor); !what.empty()) {
      problems.push_back({Severity::kRefusesTable, Display(), what, "Choose another cursor.",
                          base::kFeatureNotSupported});
      return;
    }
    const bool indexed = std::any_of(
        relation.indexes.begin(), relation.indexes.end(), [&](const pg::Index& index) {
          return index.valid && !index.partial && !index.columns.empty() &&
                 index.columns.front() == cursor;
        });
    if (!indexed) {
      problems.push_back({Severity::kNote, Display(),
                          fmt::format("cursor column \"{}\" has no index, so that each capture "
                                      "scans the relation",
                                      cursor),
                          "Create an index that begins with it.", base::kInvalidObjectDefinition});
    }
    if (connection.Value("SELECT pg_catalog.pg_is_in_recovery()") == "t") {
      problems.push_back({Severity::kNote, Display(),
                          "a standby does not show the primary's transactions, so that late commits "
                          "cannot be waited for",
                          "Declare an overlap, or read from the primary.",
                          base::kNotInPrerequisiteState});
    }
  }

  PostgresOptions options_;
  std::shared_ptr<pg::Connection> connection_;  // shared with the open reader
};

}  // namespace

std::unique_ptr<SourceRelation> OpenPostgresRelation(PostgresOptions options) {
  return std::make_unique<PostgresRelation>(std::move(options));
}

}  // namespace tidemark::source
