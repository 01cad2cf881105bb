// What another PostgreSQL pays for scanning a mirrored table through postgres_fdw at the default
// fetch_size: through the gateway beside the same table of the same store without it and, where it
// is installed, through PgBouncer; at a quarter of the rows and at all of them.
#include <fmt/format.h>

#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/gateway_process.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/pgbouncer_process.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kFirstCopyMax{20};

void ImportFrom(pg::Connection& local, const std::string& name, const std::string& host, int port) {
  local.Execute(fmt::format(
      R"sql(
CREATE SERVER {0} FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '{1}', port '{2}', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER {0} OPTIONS (user 'postgres');
CREATE SCHEMA {0};
IMPORT FOREIGN SCHEMA public LIMIT TO (ledger) FROM SERVER {0} INTO {0}
)sql",
      name, host, port));
}

// Every column of the rows up to `rows`, fetched and thrown away.
double SecondsOf(pg::Connection& local, const std::string& server, int64_t rows) {
  const auto sql =
      fmt::format("EXPLAIN (ANALYZE, TIMING off) SELECT * FROM {}.ledger WHERE id <= {}", server, rows);
  const Stopwatch watch;
  const auto plan = local.Execute(sql);
  const double seconds = watch.seconds();
  if (plan.str(0, 0).find(fmt::format("actual rows={}", rows + 1)) == std::string::npos) {
    throw std::runtime_error("not all rows came: " + plan.str(0, 0));
  }
  return seconds;
}

void Measure(int argc, char** argv) {
  CommandLine line("Measures scans of a mirrored table by postgres_fdw through the gateway.");
  int64_t rows = 1'000'000, runs = 5;
  line.Add("--rows", rows, "rows of the table");
  line.Add("--runs", runs, "runs of each, taking turns; the median counts");
  line.Read(argc, argv);
  if (line.quick) {
    rows = 100'000;
    runs = 3;
  }

  BoundedRun run(line.limit());
  Say("filling the source");
  DurableCluster source_cluster(run, {"wal_level = logical"});
  DurableCluster store_cluster(run, ListeningOnTcp(line.store_settings));
  DurableCluster local_cluster(run, {});
  auto source = source_cluster.Connect();
  auto store = store_cluster.Connect();
  CreateLedger(source, /*keyed=*/true);
  FillLedger(source, rows);
  MirrorProcess mirror({.program = line.tidemark,
                        .source_dsn = source_cluster.Dsn(),
                        .store_dsn = store_cluster.Dsn(),
                        .log = store_cluster.directory() / "tidemark.log"});
  AwaitFirstCopy(mirror, store, kFirstCopyMax);
  mirror.Stop();
  store.SetLimits(std::chrono::minutes(10), {});
  store.Execute("VACUUM (ANALYZE)");
  const GatewayProcess gateway({.program = line.tidemark,
                                .store_dsn = store_cluster.Dsn(),
                                .log = store_cluster.directory() / "gateway.log"});

  auto local = local_cluster.Connect();
  local.SetLimits(std::chrono::minutes(10), {});
  local.Execute("CREATE EXTENSION postgres_fdw");
  ImportFrom(local, "direct", GatewayProcess::kHost, store_cluster.port());
  ImportFrom(local, "gateway", GatewayProcess::kHost, gateway.port());

  std::vector<std::string> servers = {"direct", "gateway"};
  std::vector<std::string> columns = {"rows", "direct s", "gateway s", "ratio", "gateway us/row"};
  std::optional<PgbouncerProcess> pgbouncer;
  if (const auto program = FindPgbouncer()) {
    pgbouncer.emplace(PgbouncerProcess::Options{.program = *program,
                                                .store_host = store_cluster.directory(),
                                                .store_port = store_cluster.port(),
                                                .folder = store_cluster.directory()});
    ImportFrom(local, "pgbouncer", GatewayProcess::kHost, pgbouncer->port());
    servers.push_back("pgbouncer");
    columns.insert(columns.end(), {"pgbouncer s", "its ratio"});
  }

  Report report("fdw scan", columns);
  for (const int64_t part : {rows / 4, rows}) {
    Say(fmt::format("scanning {} rows", part));
    std::vector<std::vector<double>> seconds(servers.size());
    for (int64_t i = 0; i <= runs; ++i) {
      for (size_t server = 0; server < servers.size(); ++server) {
        const double taken = SecondsOf(local, servers[server], part);
        if (i > 0) seconds[server].push_back(taken);  // the first one warms up
      }
    }
    const double d = Median(seconds[0]), t = Median(seconds[1]);
    std::vector<Cell> row = {{static_cast<double>(part), 0},
                             {d, 3},
                             {t, 3},
                             {d / t, 2},
                             {t * 1e6 / static_cast<double>(part), 2}};
    if (pgbouncer) {
      const double p = Median(seconds[2]);
      row.insert(row.end(), {{p, 3}, {d / p, 2}});
    }
    report.Add(row);
    report.Figure(fmt::format("postgres_fdw, {} rows: rate through the gateway / direct", part),
                  {d / t, 2}, part == rows ? "0.9" : "");
  }
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
