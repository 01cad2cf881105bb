// What the gateway costs the smallest queries: pgbench's select-only script through it, beside the
// same directly on the store and, where it is installed, through PgBouncer (which can do less: it
// reads no SQL), in each protocol, with one client and with sixteen.
#include <fmt/format.h>

#include <regex>

#include "base/error.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/gateway_process.h"
#include "bench/pgbouncer_process.h"
#include "bench/report.h"
#include "temporal/store.h"

namespace tidemark::bench {
namespace {

struct Server {
  std::string host;
  int port;
};

struct Load {
  std::string protocol;
  int64_t clients;
};

struct Rate {
  double per_second = 0, latency_us = 0;
};

double Number(const std::string& output, const std::string& pattern) {
  std::smatch found;
  if (!std::regex_search(output, found, std::regex(pattern))) {
    throw base::Error(base::kInternalError, "pgbench said something else: " + output);
  }
  return std::stod(found[1]);
}

Rate RunPgbench(const Server& server, const Load& load, int64_t seconds) {
  std::string output;
  const int code = tests::Run(
      {(tests::ServerBinaries() / "pgbench").string(), "--no-vacuum", "--select-only", "-M",
       load.protocol, "-c", std::to_string(load.clients), "-j",
       std::to_string(std::min<int64_t>(load.clients, 2)), "-T", std::to_string(seconds), "-h",
       server.host, "-p", std::to_string(server.port), "-U", "postgres", "bench"},
      &output);
  if (code != 0) throw base::Error(base::kInternalError, "pgbench failed: " + output);
  return {Number(output, R"(tps = ([0-9.]+))"),
          Number(output, R"(latency average = ([0-9.]+) ms)") * 1000};
}

/// All in turn, so that what else the machine does reaches them alike; medians.
std::vector<Rate> Compare(const std::vector<Server>& servers, const Load& load, int64_t seconds,
                          int64_t rounds) {
  std::vector<std::vector<double>> rates(servers.size()), latencies(servers.size());
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < servers.size(); ++i) {
      const Rate rate = RunPgbench(servers[i], load, seconds);
      rates[i].push_back(rate.per_second);
      latencies[i].push_back(rate.latency_us);
    }
  }
  std::vector<Rate> medians;
  for (size_t i = 0; i < servers.size(); ++i) {
    medians.push_back({Median(rates[i]), Median(latencies[i])});
  }
  return medians;
}

void Measure(int argc, char** argv) {
  CommandLine line("Measures pgbench's select-only script through the gateway beside direct.");
  int64_t seconds = 5, rounds = 3, scale = 10;
  line.Add("--seconds", seconds, "of each run");
  line.Add("--rounds", rounds, "runs of each side, in turn");
  line.Add("--scale", scale, "pgbench's scale");
  line.Read(argc, argv);
  if (line.quick) {
    seconds = 1;
    rounds = 1;
    scale = 1;
  }
  BoundedRun run(line.limit());
  DurableCluster cluster(run, ListeningOnTcp(line.store_settings));
  cluster.CreateDatabase("bench");
  {
    auto store = cluster.Connect("bench");
    temporal::Migrate(store);
  }
  const Server direct{GatewayProcess::kHost, cluster.port()};
  std::string output;
  if (tests::Run({(tests::ServerBinaries() / "pgbench").string(), "-i", "-q", "-s",
                  std::to_string(scale), "-h", direct.host, "-p",
                  std::to_string(direct.port), "-U", "postgres", "bench"},
                 &output) != 0) {
    throw base::Error(base::kInternalError, "pgbench -i failed: " + output);
  }
  GatewayProcess gateway({.program = line.tidemark,
                          .store_dsn = cluster.Dsn("bench"),
                          .log = cluster.directory() / "gateway.log"});
  std::vector<Server> servers = {direct, {GatewayProcess::kHost, gateway.port()}};
  std::optional<PgbouncerProcess> pgbouncer;
  std::vector<std::string> columns = {"protocol", "clients", "direct tps", "gateway tps", "ratio",
                                      "direct us", "gateway us", "added us", "gateway cpu us"};
  if (const auto program = FindPgbouncer()) {
    pgbouncer.emplace(PgbouncerProcess::Options{.program = *program,
                                                .store_host = cluster.directory(),
                                                .store_port = cluster.port(),
                                                .folder = cluster.directory()});
    servers.push_back({GatewayProcess::kHost, pgbouncer->port()});
    columns.insert(columns.end(), {"pgbouncer tps", "its ratio", "of pgbouncer"});
  }
  Report report("select only", columns);
  report.Note("scale", {static_cast<double>(scale), 0});
  for (const char* protocol : {"simple", "extended", "prepared"}) {
    for (const int64_t clients : {1, 16}) {
      Say(fmt::format("{}, {} clients", protocol, clients));
      const double before = ProcessorSecondsOf(gateway.pid());
      const auto rates = Compare(servers, {protocol, clients}, seconds, rounds);
      const double cpu = ProcessorSecondsOf(gateway.pid()) - before;
      const Rate &plain = rates[0], &through = rates[1];
      const double queries = through.per_second * static_cast<double>(seconds * rounds);
      std::vector<Cell> row = {
          protocol, {static_cast<double>(clients), 0}, {plain.per_second, 0},
          {through.per_second, 0}, {through.per_second / plain.per_second, 2},
          {plain.latency_us, 0}, {through.latency_us, 0},
          {through.latency_us - plain.latency_us, 0}, {cpu * 1e6 / queries, 1}};
      if (pgbouncer) {
        const Rate& peer = rates[2];
        row.insert(row.end(), {{peer.per_second, 0}, {peer.per_second / plain.per_second, 2},
                               {through.per_second / peer.per_second, 2}});
      }
      report.Add(row);
      report.Figure(fmt::format("pgbench -S, {}, {} clients: rate through the gateway / direct", protocol,
                                clients),
                    {through.per_second / plain.per_second, 2}, clients == 16 ? "0.9" : "");
    }
  }
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
