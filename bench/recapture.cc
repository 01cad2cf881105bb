// How long a snapshot that was captured before takes to be captured again, unchanged and with one
// row in a thousand changed, beside psql reading the same relation by COPY binary; and what the
// first capture took. Memory must not grow with the relation, so it is measured at more than one
// size.
#include <fcntl.h>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/child_process.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/polling.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kCaptureMax{30};

struct Taken {
  double seconds = 0, process_cpu = 0;
  int64_t peak_resident = 0;
};

class Recaptures {
 public:
  Recaptures(BoundedRun& run, const CommandLine& line, int64_t rows)
      : line_(line),
        rows_(rows),
        source_cluster_(run),
        store_cluster_(run, line.store_settings),
        source_(source_cluster_.Connect()),
        config_(store_cluster_.directory() / "tidemark.yaml") {
    Say(fmt::format("filling the source: {} rows", rows));
    source_.SetLimits(kCaptureMax, {});
    source_.Execute(fmt::format(
        R"sql(
CREATE TABLE public.wide (
  id bigint PRIMARY KEY, customer int NOT NULL, amount numeric(12,2), placed timestamptz,
  shipped date, state text, note text, weight float8, express boolean, reference uuid);
INSERT INTO public.wide
SELECT i, i % 50000, (i % 100000) / 100.0, '2026-01-01'::timestamptz + i * interval '1 s',
       date '2026-01-01' + (i % 300)::int, (ARRAY['new', 'paid', 'sent', 'done'])[1 + i % 4],
       'note on order ' || i, i / 7.0, i % 3 = 0, md5(i::text)::uuid
FROM generate_series(1, {}) i
)sql",
        rows));
    source_.Execute("VACUUM (FREEZE, ANALYZE) public.wide");
    std::ofstream(config_) << fmt::format(
        "store: \"{}\"\nsources:\n  shop: {{postgres: \"{}\"}}\ndatasets:\n  public.wide: "
        "{{source: shop, relation: public.wide, strategy: snapshot, key: [id]}}\n",
        store_cluster_.Dsn(), source_cluster_.Dsn());
  }

  double ByPsql() {
    source_cluster_.Settle();
    const Stopwatch watch;
    std::string output;
    const auto ended = base::RunToEnd(
        {.command = {"/bin/sh", "-c",
                     fmt::format("'{}' -Xqd '{}' -c 'COPY public.wide TO STDOUT (FORMAT binary)' "
                                 "> /dev/null",
                                 (tests::ServerBinaries() / "psql").string(),
                                 source_cluster_.Dsn())},
         .environment = {"PATH=/usr/bin:/bin"},
         .account = std::nullopt,
         .dies_with_parent = true},
        &output, base::Deadline::After(kCaptureMax));
    if (!ended.ok()) throw std::runtime_error("psql: " + output);
    return watch.seconds();
  }

  Taken Capture() {
    source_cluster_.Settle();
    store_cluster_.Settle();
    const auto log = store_cluster_.directory() / "capture.log";
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) throw std::runtime_error("could not open " + log.string());
    const Stopwatch watch;
    auto process = base::ChildProcess::Start(
        {.command = {line_.tidemark, "capture", "--config", config_.string()},
         .environment = {"PATH=/usr/bin:/bin"},
         .account = std::nullopt,
         .output_fd = fd,
         .dies_with_parent = true});
    ::close(fd);
    Taken taken;
    std::optional<base::ExitStatus> ended;
    PollUntil("a capture", kCaptureMax, [&] {
      taken.peak_resident = std::max(taken.peak_resident, PeakResidentBytesOf(process.pid()));
      taken.process_cpu = std::max(taken.process_cpu, ProcessorSecondsOf(process.pid()));
      ended = process.Wait(base::Deadline::After(std::chrono::milliseconds(0)));
      return ended.has_value();
    });
    taken.seconds = watch.seconds();
    if (!ended->ok()) {
      std::ifstream in(log);
      throw std::runtime_error("tidemark capture: " +
                               std::string(std::istreambuf_iterator<char>(in), {}));
    }
    return taken;
  }

  void ChangeOneInThousand(int64_t round) {
    source_.Execute(fmt::format(
        "UPDATE public.wide SET amount = amount + 1, state = 'changed' WHERE id % 1000 = {}",
        round));
    source_.Execute("VACUUM public.wide");
  }

  void Verify() {
    const std::string sql =
        "SELECT count(*) || ' ' || sum(hashtextextended(w::text, 0)::numeric) FROM public.wide w";
    auto store = store_cluster_.Connect();
    store.SetLimits(kCaptureMax, {});
    if (store.Value(sql) != source_.Value(sql)) {
      throw std::runtime_error("the store has other rows than the source");
    }
  }

  int64_t rows() const { return rows_; }

 private:
  const CommandLine& line_;
  int64_t rows_;
  DurableCluster source_cluster_, store_cluster_;
  pg::Connection source_;
  std::filesystem::path config_;
};

void Measure(int argc, char** argv) {
  CommandLine line("Measures captures of a snapshot beside psql's COPY of the relation.");
  int64_t rows = 1'000'000, large_rows = 5'000'000, rounds = 3;
  line.Add("--rows", rows, "rows of the relation");
  line.Add("--large-rows", large_rows, "rows of a larger one, for memory; 0: none");
  line.Add("--repeat", rounds, "how often each is measured");
  line.Read(argc, argv);
  if (line.quick) {
    rows = 50'000;
    large_rows = 100'000;
    rounds = 1;
  }
  BoundedRun run(line.limit());
  Report report("recapture", {"rows", "what", "seconds", "psql COPY", "ratio", "cpu process",
                              "peak MB"});
  for (const int64_t size : {rows, large_rows}) {
    if (size == 0) continue;
    Recaptures captures(run, line, size);
    captures.ByPsql();  // nobody pays for reading the table from disk
    std::map<std::string, std::vector<double>> ratios;
    const auto add = [&](const char* what) {
      const double psql = captures.ByPsql();
      Say(what);
      const Taken taken = captures.Capture();
      report.Add({{static_cast<double>(size), 0},
                  what,
                  {taken.seconds, 2},
                  {psql, 2},
                  {taken.seconds / psql, 2},
                  {taken.process_cpu, 2},
                  {static_cast<double>(taken.peak_resident) / 1e6, 0}});
      ratios[what].push_back(taken.seconds / psql);
    };
    add("first");
    for (int64_t round = 0; round < rounds; ++round) add("unchanged");
    for (int64_t round = 0; round < rounds; ++round) {
      captures.ChangeOneInThousand(round);
      add("0.1 % changed");
    }
    captures.Verify();
    for (const auto& [what, all] : ratios) {
      report.Figure(fmt::format("capture of {} rows, {}: time / psql COPY", size, what),
                    {Median(all), 2}, what == "first" ? "" : "3");
    }
  }
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
