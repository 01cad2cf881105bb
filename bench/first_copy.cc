// How long a first copy takes until it is readable, beside the plainest way to move a table: COPY
// binary from psql into psql, then the primary key and the index. Both into durable clusters.
#include <fmt/format.h>

#include <memory>

#include "base/child_process.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kCopyMax{30};
constexpr const char* kIndex = "CREATE INDEX ON public.ledger (e)";

struct Copied {
  double rows_seconds = 0;  // COPY only; 0 where it cannot be told
  double seconds = 0;
  double source_cpu = 0, process_cpu = 0, store_cpu = 0;
  int64_t log_bytes = 0, peak_resident = 0;
};

class FirstCopies {
 public:
  FirstCopies(BoundedRun& run, const CommandLine& line)
      : run_(run),
        line_(line),
        source_cluster_(run, {"wal_level = logical"}),
        source_(source_cluster_.Connect()) {}

  void Prepare(int64_t rows) {
    Say(fmt::format("filling the source: {} rows", rows));
    CreateLedger(source_, /*keyed=*/true);
    FillLedger(source_, rows);
    source_.Execute(kIndex);
    // Nobody pays for reading the table from disk.
    contents_ = LedgerContents(source_);
  }

  Copied ByPsql() {
    Say("copying by psql");
    DurableCluster cluster(run_, line_.store_settings);
    auto store = cluster.Connect();
    CreateLedger(store, /*keyed=*/false);
    source_cluster_.Settle();
    cluster.Settle();
    const double source_cpu = source_cluster_.ProcessorSeconds();
    const double store_cpu = cluster.ProcessorSeconds();
    const int64_t log = cluster.LogBytes();
    const auto psql = (tests::ServerBinaries() / "psql").string();
    Copied copied;
    const Stopwatch watch;
    std::string output;
    const auto ended = base::RunToEnd(
        {.command = {"/bin/sh", "-c",
                     fmt::format("{0} -Xqd '{1}' -c 'COPY public.ledger TO STDOUT (FORMAT binary)'"
                                 " | {0} -Xqd '{2}' -c 'COPY public.ledger FROM STDIN (FORMAT "
                                 "binary)'",
                                 psql, source_cluster_.Dsn(), cluster.Dsn())},
         .environment = {"PATH=/usr/bin:/bin"},
         .account = std::nullopt,
         .folder = "/",
         .output_fd = -1,
         .kept_fds = {},
         .dies_with_parent = true},
        &output, base::Deadline::After(kCopyMax));
    if (!ended.ok()) throw std::runtime_error("psql: " + output);
    copied.rows_seconds = watch.seconds();
    store.SetLimits(kCopyMax, {});
    store.Execute("ALTER TABLE public.ledger ADD PRIMARY KEY (id)");
    store.Execute(kIndex);
    copied.seconds = watch.seconds();
    copied.source_cpu = source_cluster_.ProcessorSeconds() - source_cpu;
    copied.store_cpu = cluster.ProcessorSeconds() - store_cpu;
    copied.log_bytes = cluster.LogBytes() - log;
    Verify(store);
    return copied;
  }

  Copied ByTidemark() {
    Say("copying by tidemark");
    DurableCluster cluster(run_, line_.store_settings);
    auto store = cluster.Connect();
    source_cluster_.Settle();
    cluster.Settle();
    const double source_cpu = source_cluster_.ProcessorSeconds();
    const double store_cpu = cluster.ProcessorSeconds();
    const int64_t log = cluster.LogBytes();
    Copied copied;
    const Stopwatch watch;
    MirrorProcess mirror({.program = line_.tidemark,
                          .source_dsn = source_cluster_.Dsn(),
                          .store_dsn = cluster.Dsn(),
                          .log = cluster.directory() / "tidemark.log"});
    AwaitFirstCopy(mirror, store, kCopyMax);
    copied.seconds = watch.seconds();
    copied.source_cpu = source_cluster_.ProcessorSeconds() - source_cpu;
    copied.process_cpu = ProcessorSecondsOf(mirror.pid());
    copied.store_cpu = cluster.ProcessorSeconds() - store_cpu;
    copied.log_bytes = cluster.LogBytes() - log;
    copied.peak_resident = PeakResidentBytesOf(mirror.pid());
    mirror.Stop();
    source_.Execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
    Verify(store);
    return copied;
  }

 private:
  void Verify(pg::Connection& store) const {
    const auto found = LedgerContents(store);
    if (found != contents_) {
      throw std::runtime_error(fmt::format("the copy has {}, the source {}", found, contents_));
    }
  }

  BoundedRun& run_;
  const CommandLine& line_;
  DurableCluster source_cluster_;
  pg::Connection source_;
  std::string contents_;
};

void Measure(int argc, char** argv) {
  CommandLine line("Measures a first copy beside COPY from psql into psql.");
  int64_t rows = 5'000'000;
  int64_t rounds = 1;
  line.Add("--rows", rows, "rows of the table");
  line.Add("--repeat", rounds, "how often each copies");
  line.Read(argc, argv);
  if (line.quick) rows = 300'000;

  BoundedRun run(line.limit());
  Say("starting");
  FirstCopies copies(run, line);
  copies.Prepare(rows);
  Report report("first copy", {"round", "peer", "rows/s", "seconds", "of it COPY", "cpu source",
                               "cpu process", "cpu store", "log MB", "peak MB"});
  report.Note("rows", {static_cast<double>(rows), 0});
  std::vector<double> psql_seconds, our_seconds;
  for (int64_t round = 1; round <= rounds; ++round) {
    const auto add = [&](const std::string& peer, const Copied& c, std::vector<double>& seconds) {
      seconds.push_back(c.seconds);
      report.Add(
          {{static_cast<double>(round), 0},
           peer,
           {static_cast<double>(rows) / c.seconds, 0},
           {c.seconds, 2},
           c.rows_seconds == 0 ? Cell() : Cell(c.rows_seconds, 2),
           {c.source_cpu, 1},
           {c.process_cpu, 1},
           {c.store_cpu, 1},
           {static_cast<double>(c.log_bytes) / 1e6, 0},
           c.peak_resident == 0 ? Cell() : Cell(static_cast<double>(c.peak_resident) / 1e6, 0)});
    };
    add("psql", copies.ByPsql(), psql_seconds);
    add("tidemark", copies.ByTidemark(), our_seconds);
  }
  report.Figure("first copy: Tidemark's rate / psql", {Median(psql_seconds) / Median(our_seconds), 2},
                "0.9");
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
