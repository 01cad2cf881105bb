#include <fmt/format.h>

#include "source/postgres/postgres_relation.h"
#include "tests/cluster.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {

namespace {

pg::Connection Connect(const std::string& dsn) {
  return pg::Connection::Open({.dsn = dsn}, base::Deadline::After(std::chrono::seconds(30)));
}

class PostgresSpecimen final : public Specimen {
 public:
  std::unique_ptr<source::SourceRelation> Rows(int rows) override {
    const std::string name = fmt::format("rows_{}", ++made_);
    Connect(dsn_).Execute(fmt::format(
        "CREATE TABLE public.{0} AS SELECT id, CASE WHEN id % 7 <> 0 THEN 'row ' || id END AS name,"
        " id + 0.25::float8 AS amount FROM generate_series(1, {1}) id;"
        "ALTER TABLE public.{0} ADD PRIMARY KEY (id)",
        name, rows));
    return Relation("public." + name);
  }
  std::unique_ptr<source::SourceRelation> Missing() override { return Relation("public.missing"); }
  std::unique_ptr<source::SourceRelation> Broken() override {
    Connect(dsn_).Execute(
        "CREATE OR REPLACE VIEW public.broken AS"
        " SELECT id, 1 / (id - 9000) AS n FROM generate_series(1, 100000) id");
    return Relation("broken");
  }
  std::unique_ptr<source::SourceRelation> Stuck() override {
    Connect(dsn_).Execute(
        "CREATE OR REPLACE VIEW public.stuck AS SELECT 1 AS id FROM pg_sleep(3600)");
    return Relation("stuck");
  }
  std::vector<std::string> Facts() const override {
    return {"system_identifier", "timeline", "lsn", "snapshot", "relation_oid", "server_version"};
  }

 private:
  std::unique_ptr<source::SourceRelation> Relation(const std::string& name) {
    return source::OpenPostgresRelation({.dsn = dsn_, .relation = name});
  }

  std::string dsn_ = NewDatabase();
  int made_ = 0;
};

}  // namespace

std::string NewDatabase() {
  static int number = 0;
  return Cluster::Shared().CreateDatabase(fmt::format("source_{}", ++number));
}

std::vector<SpecimenKind> PostgresSpecimens() {
  return {{"Postgres", [] { return std::make_unique<PostgresSpecimen>(); }}};
}

}  // namespace tidemark::tests
