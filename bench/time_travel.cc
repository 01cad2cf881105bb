// What a query AS OF an instant costs beside the same query on a plain table with the same rows:
// one row by key, a count and a grouped sum, at 10, 50 and 90 % of the history and now.
#include <fmt/format.h>

#include <regex>
#include <set>

#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/polling.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kDrainMax{45};
constexpr std::chrono::minutes kSealMax{10};
constexpr int kRuns = 5;

struct Query {
  std::string name, before, after;
  std::string On(const std::string& relation) const { return before + relation + after; }
};

struct Plan {
  size_t partitions = 0;  // of history that it reads
  bool parallel = false;
};

Plan PlanOf(pg::Connection& store, const std::string& sql) {
  const auto rows = store.Execute("EXPLAIN (COSTS off) " + sql);
  static const std::regex partition(" d[0-9]+_p[0-9]+");
  std::set<std::string> partitions;
  Plan plan;
  for (int i = 0; i < rows.rows(); ++i) {
    const auto line = rows.str(i, 0);
    plan.parallel = plan.parallel || line.find("Workers Planned") != std::string::npos;
    if (line.find(" on ") == std::string::npos) continue;
    std::smatch found;
    if (std::regex_search(line, found, partition)) partitions.insert(found.str());
  }
  plan.partitions = partitions.size();
  return plan;
}

// The median of several runs after one that warms up.
double MillisecondsOf(pg::Connection& store, const std::string& sql) {
  std::vector<double> milliseconds;
  for (int run = 0; run <= kRuns; ++run) {
    const Stopwatch watch;
    store.Execute(sql);
    if (run > 0) milliseconds.push_back(watch.seconds() * 1000);
  }
  return Median(milliseconds);
}

// Writes the history through the mirror and waits until what is full of it has been sealed.
void MakeHistory(pg::Connection& source, MirrorProcess& mirror, pg::Connection& store,
                 const Backlog& backlog) {
  AwaitFirstCopy(mirror, store, kDrainMax);
  Say(fmt::format("writing {} versions in {} transactions", backlog.bulk_changes(), backlog.bulk));
  WriteBulk(source, backlog, 1);
  WriteMarker(source, 1);
  Say("waiting for the mirror");
  PollUntil("the history", kDrainMax, [&] {
    mirror.RequireRunning();
    return MarkerReached(store, 1);
  });
  Say("waiting for the sealing");
  PollUntil("the sealing", kSealMax, [&] {
    mirror.RequireRunning();
    return store.Value(R"sql(
SELECT count(*) FROM tidemark.history_partition p, tidemark.resume r
WHERE NOT p.sealed AND p.tx_to <= r.tx_last
)sql") == "0";
  });
}

struct Instant {
  std::string name, relation;
};

std::vector<Instant> Instants(pg::Connection& store) {
  std::vector<Instant> instants;
  for (const int percent : {10, 50, 90}) {
    const auto time = store.Value(
        R"sql(
SELECT b.system_time FROM tidemark.basis_journal b
WHERE b.tx_last >= (SELECT max(tx_last) FROM tidemark.basis_journal) * $1::integer / 100
ORDER BY b.tx_last LIMIT 1
)sql",
        {std::to_string(percent)});
    instants.push_back({fmt::format("{} %", percent),
                        fmt::format("tidemark.as_of(NULL::public.ledger, '{}') AS l", time)});
  }
  instants.push_back({"latest", "public.ledger AS l"});
  return instants;
}

void Measure(int argc, char** argv) {
  CommandLine line("Measures queries AS OF an instant beside the same on a plain table.");
  Backlog backlog{.rows = 1'000'000, .bulk_rows = 20};
  int64_t versions = 5'000'000;
  line.Add("--rows", backlog.rows, "live rows");
  line.Add("--versions", versions, "closed row versions");
  line.Add("--per-transaction", backlog.bulk_rows, "rows that one transaction updates");
  line.Read(argc, argv);
  if (line.quick) {
    backlog.rows = 100'000;
    versions = 500'000;
    backlog.bulk_rows = 4;
  }
  backlog.bulk = versions / backlog.bulk_rows;

  BoundedRun run(line.limit());
  Say("filling the source");
  DurableCluster source_cluster(run, {"wal_level = logical"});
  DurableCluster store_cluster(run, line.store_settings);
  auto source = source_cluster.Connect();
  auto store = store_cluster.Connect();
  store.SetLimits(std::chrono::minutes(10), {});
  CreateLedger(source, /*keyed=*/true);
  FillLedger(source, backlog.rows);
  MirrorProcess mirror({.program = line.tidemark,
                        .source_dsn = source_cluster.Dsn(),
                        .store_dsn = store_cluster.Dsn(),
                        .log = store_cluster.directory() / "tidemark.log"});
  MakeHistory(source, mirror, store, backlog);
  mirror.Stop();
  store.Execute(R"sql(
CREATE TABLE public.plain AS SELECT * FROM public.ledger ORDER BY id;
ALTER TABLE public.plain ADD PRIMARY KEY (id)
)sql");
  store.Execute("VACUUM (ANALYZE) public.plain");

  Report report("time travel",
                {"query", "as of", "ms", "plain ms", "ratio", "partitions read", "parallel"});
  report.Note("live rows", {static_cast<double>(backlog.rows), 0});
  report.Note("closed versions",
              {std::stod(store.Value("SELECT count(*) FROM public_history.ledger "
                                     "WHERE tx_to IS NOT NULL")),
               0});
  report.Note("partitions",
              {std::stod(store.Value("SELECT count(*) FROM tidemark.history_partition")), 0});
  report.Note("sealed", {std::stod(store.Value("SELECT count(*) FROM tidemark.history_partition "
                                               "WHERE sealed")),
                         0});
  const std::vector<Query> queries = {
      {"one row by key", "SELECT * FROM ", fmt::format(" WHERE id = {}", backlog.rows / 3)},
      {"count", "SELECT count(*) FROM ", ""},
      {"grouped sum", "SELECT a % 16, sum(d), max(e) FROM ", " GROUP BY 1"}};
  Say("asking");
  for (const auto& query : queries) {
    const double plain = MillisecondsOf(store, query.On("public.plain"));
    for (const auto& instant : Instants(store)) {
      const auto sql = query.On(instant.relation);
      if (query.name == "count" && store.Value(sql) != std::to_string(backlog.rows + 1)) {
        throw std::runtime_error("the count is wrong: " + sql);
      }
      const auto plan = PlanOf(store, sql);
      const double milliseconds = MillisecondsOf(store, sql);
      report.Add({query.name,
                  instant.name,
                  {milliseconds, 2},
                  {plain, 2},
                  {milliseconds / plain, 2},
                  {static_cast<double>(plan.partitions), 0},
                  plan.parallel ? "yes" : "no"});
    }
  }
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
