#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "source/adbc/adbc_relation.h"
#include "tests/cluster.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {

namespace {

source::Limit Soon() { return {base::Deadline::After(std::chrono::seconds(60)), {}}; }

class AdbcSpecimen : public Specimen {
 public:
  AdbcSpecimen(std::string driver, std::string uri)
      : driver_(std::move(driver)), uri_(std::move(uri)) {}

  std::unique_ptr<source::SourceRelation> Missing() override { return Relation("missing"); }
  std::vector<std::string> Facts() const override {
    return {"driver", "driver_version", "vendor", "vendor_version"};
  }

 protected:
  std::unique_ptr<source::SourceRelation> Relation(const std::string& name) {
    return source::OpenAdbcRelation(
        {.driver = {.driver = AdbcDriverPath(driver_), .entrypoint = "", .options = {{"uri",
                                                                                      uri_}}},
         .relation = name,
         .query = ""});
  }
  void Run(const std::vector<std::string>& statements) {
    RunThroughAdbc(driver_, uri_, statements);
  }
  int made_ = 0;

 private:
  std::string driver_, uri_;
};

class SqliteSpecimen final : public AdbcSpecimen {
 public:
  SqliteSpecimen() : SqliteSpecimen(std::make_unique<TemporaryFolder>()) {}

  std::unique_ptr<source::SourceRelation> Rows(int rows) override {
    const std::string name = fmt::format("rows_{}", ++made_);
    Run({fmt::format("CREATE TABLE {} (id integer PRIMARY KEY, name text, amount real)", name),
         fmt::format("INSERT INTO {} WITH RECURSIVE s(id) AS (SELECT 1 WHERE {} > 0 UNION ALL"
                     " SELECT id + 1 FROM s WHERE id < {}) SELECT id,"
                     " CASE WHEN id % 7 <> 0 THEN 'row ' || id END, id + 0.25 FROM s",
                     name, rows, rows)});
    return Relation(name);
  }
  // SQLite's columns have no type: the driver goes by the first rows.
  std::unique_ptr<source::SourceRelation> Broken() override {
    Run({"CREATE TABLE IF NOT EXISTS broken (id integer, v)",
         "INSERT INTO broken WITH RECURSIVE s(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM s"
         " WHERE id < 9000) SELECT id, id FROM s",
         "INSERT INTO broken VALUES (9001, 'no number')"});
    return Relation("broken");
  }

 private:
  explicit SqliteSpecimen(std::unique_ptr<TemporaryFolder> folder)
      : AdbcSpecimen("sqlite", (folder->path() / "rows.db").string()), folder_(std::move(folder)) {}
  std::unique_ptr<TemporaryFolder> folder_;
};

class AdbcPostgresSpecimen final : public AdbcSpecimen {
 public:
  AdbcPostgresSpecimen() : AdbcSpecimen("postgresql", NewDatabase()) {}

  std::unique_ptr<source::SourceRelation> Rows(int rows) override {
    const std::string name = fmt::format("rows_{}", ++made_);
    Run({fmt::format("CREATE TABLE {} AS SELECT id,"
                     " CASE WHEN id % 7 <> 0 THEN 'row ' || id END AS name,"
                     " id + 0.25::float8 AS amount FROM generate_series(1, {}) id",
                     name, rows)});
    return Relation(name);
  }
  std::unique_ptr<source::SourceRelation> Broken() override {
    Run({"CREATE OR REPLACE VIEW broken AS"
         " SELECT id, 1 / (id - 90000) AS n FROM generate_series(1, 100000) id"});
    return Relation("broken");
  }
  std::unique_ptr<source::SourceRelation> Stuck() override {
    Run({"CREATE OR REPLACE VIEW stuck AS SELECT 1 AS id FROM pg_sleep(3600)"});
    return Relation("stuck");
  }
};

}  // namespace

std::string AdbcDriverPath(const std::string& driver) {
  const auto path = std::filesystem::path(TIDEMARK_ADBC_DRIVERS) / ("adbc_driver_" + driver) /
                    ("libadbc_driver_" + driver + ".so");
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("no ADBC driver " + driver + ": run tools/setup");
  }
  return path.string();
}

void RunThroughAdbc(const std::string& driver, const std::string& uri,
                    const std::vector<std::string>& statements) {
  source::AdbcSession session(
      {.driver = AdbcDriverPath(driver), .entrypoint = "", .options = {{"uri", uri}}});
  session.Open(Soon());
  for (const std::string& statement : statements) {
    session.Execute(statement, nullptr, Soon());
    while (session.Next(Soon()) != nullptr) {
    }
  }
}

std::vector<SpecimenKind> AdbcSpecimens() {
  return {{"AdbcSqlite", [] { return std::make_unique<SqliteSpecimen>(); }},
          {"AdbcPostgres", [] { return std::make_unique<AdbcPostgresSpecimen>(); }}};
}

std::vector<SpecimenKind> ServerSpecimens() {
  std::vector<SpecimenKind> servers = PostgresSpecimens();
  servers.push_back(AdbcSpecimens().back());
  return servers;
}

}  // namespace tidemark::tests
