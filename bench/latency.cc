// How long a commit of the source takes to be visible in the store: from the moment at which COMMIT
// has returned to its writer until a watcher that reads the mirrored table sees the row. Beside
// PostgreSQL's own subscription, each running alone. Rows of one table that are inserted; and with each
// of them a row updated, of one of many tables after the other.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/native_subscription.h"
#include "bench/polling.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kCatchUpMax{2};
constexpr int kWriters = 4;
// The watcher's pause between two looks: finer than what is measured, and leaves the cores free.
constexpr std::chrono::microseconds kLookInterval{500};
constexpr std::chrono::milliseconds kIdleInterval{500};

// The rows of one writer, by their sequence: when each was committed and when it was first seen.
// Its writer appends commits, the watcher appends sights.
struct Lane {
  int64_t first = 0;  // the sequence of the first entry
  std::vector<Clock::time_point> committed, seen;
};

void CreateTick(pg::Connection& on) {
  on.Execute(R"sql(
CREATE TABLE public.tick (writer integer, seq bigint, at timestamptz, payload text,
                          PRIMARY KEY (writer, seq))
)sql");
}

// Commits one row each time it is due until the end; never earlier, and late ones at once. With each
// row one of one of so many other tables is updated, of the writer's own.
void Write(pg::Connection source, int writer, Lane& lane, Clock::time_point begin,
           Clock::time_point end, Clock::duration interval, int64_t tables) {
  int64_t seq = lane.first;
  for (auto due = begin; due < end; due += interval) {
    std::this_thread::sleep_until(due);
    if (Clock::now() >= end) break;
    if (tables > 0) {
      source.Execute(fmt::format("BEGIN; UPDATE public.side_{} SET n = n + 1 WHERE id = {}",
                                 (seq * kWriters + writer) % tables, writer));
    }
    source.ExecutePrepared(
        "INSERT INTO public.tick VALUES ($1::integer, $2::bigint, clock_timestamp(), "
        "'twenty bytes of text')",
        {std::to_string(writer), std::to_string(seq++)});
    if (tables > 0) source.Execute("COMMIT");
    lane.committed.push_back(Clock::now());
  }
}

class Watcher {
 public:
  Watcher(pg::Connection store, std::vector<Lane>& lanes)
      : store_(std::move(store)), lanes_(lanes) {}

  /// Looks once; the newest sequence of each lane, as of after the look.
  void Look() {
    const auto newest = store_.ExecutePrepared(
        R"sql(
SELECT coalesce((SELECT t.seq FROM public.tick AS t WHERE t.writer = w
                 ORDER BY t.seq DESC LIMIT 1), -1)
FROM generate_series(0, $1::integer - 1) AS w ORDER BY w
)sql",
        {std::to_string(lanes_.size())});
    const auto now = Clock::now();
    for (int i = 0; i < newest.rows(); ++i) {
      auto& lane = lanes_[static_cast<size_t>(i)];
      const int64_t seen = newest.int64(i, 0) - lane.first + 1;
      while (static_cast<int64_t>(lane.seen.size()) < seen) lane.seen.push_back(now);
    }
  }

 private:
  pg::Connection store_;
  std::vector<Lane>& lanes_;
};

struct Latencies {
  double reached = 0;  // commits per second
  std::vector<double> milliseconds;
};

class Latency {
 public:
  Latency(BoundedRun& run, const CommandLine& line, double seconds, int64_t tables)
      : line_(line),
        tables_(tables),
        span_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        source_cluster_(run, {"wal_level = logical"}),
        native_cluster_(run, line.store_settings),
        store_cluster_(run, line.store_settings),
        source_(source_cluster_.Connect()),
        native_(native_cluster_.Connect()),
        store_(store_cluster_.Connect()) {}

  void Prepare() {
    CreateTick(source_);
    CreateSides(source_, tables_);
    for (int64_t i = 0; i < tables_; ++i) {
      source_.Execute(fmt::format("INSERT INTO public.side_{} SELECT w, 0, 'twenty bytes of text' "
                                  "FROM generate_series(0, {}) AS w", i, kWriters - 1));
    }
    source_.Execute("CREATE PUBLICATION tidemark FOR ALL TABLES");
    CreateTick(native_);
    CreateSides(native_, tables_);
    subscription_.emplace(source_cluster_.Dsn(), "tidemark", native_, kCatchUpMax);
    subscription_->Disable();
    auto mirror = Mirror();
    AwaitFirstCopy(*mirror, store_, kCatchUpMax);
    mirror->Stop();
  }

  Latencies OfSubscription(int64_t rate, bool spread) {
    Say(fmt::format("the native subscription at {}", Name(rate, spread)));
    subscription_->Enable();
    auto latencies = Measure(native_cluster_, native_, rate, spread, [] {});
    subscription_->Disable();
    return latencies;
  }

  Latencies OfTidemark(int64_t rate, bool spread) {
    Say(fmt::format("tidemark at {}", Name(rate, spread)));
    auto mirror = Mirror();
    auto latencies = Measure(store_cluster_, store_, rate, spread,
                             [&] { mirror->RequireRunning(); });
    mirror->Stop();
    return latencies;
  }

  std::string Name(int64_t rate, bool spread) const {
    if (rate == 0) return "idle";
    return fmt::format("{} commits/s", rate) + (spread ? fmt::format(" over {} tables", tables_) : "");
  }

 private:
  std::unique_ptr<MirrorProcess> Mirror() {
    return std::make_unique<MirrorProcess>(
        MirrorProcess::Options{.program = line_.tidemark,
                               .source_dsn = source_cluster_.Dsn(),
                               .store_dsn = store_cluster_.Dsn(),
                               .log = store_cluster_.directory() / "tidemark.log"});
  }

  // Rows of earlier measurements must have arrived, and one more shows that the stream runs.
  void AwaitStream(pg::Connection& store, const std::function<void()>& check) {
    source_.Execute("INSERT INTO public.tick VALUES (-1, $1::bigint, clock_timestamp(), '')",
                    {std::to_string(++probes_)});
    PollUntil("the stream", kCatchUpMax, [&] {
      check();
      return store
                 .Execute("SELECT 1 FROM public.tick WHERE writer = -1 AND seq = $1::bigint",
                          {std::to_string(probes_)})
                 .rows() == 1;
    });
  }

  Latencies Measure(const DurableCluster& cluster, pg::Connection& store, int64_t rate,
                    bool spread, const std::function<void()>& check) {
    AwaitStream(store, check);
    const size_t writers = rate == 0 ? 1 : kWriters;
    const Clock::duration interval =
        rate == 0 ? Clock::duration(kIdleInterval)
                  : std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(1)) *
                        static_cast<int64_t>(writers) / rate;
    std::vector<Lane> lanes(writers);
    for (auto& lane : lanes) {
      lane.first = next_seq_;
      // A vector that grows would move under the other thread's feet.
      lane.committed.reserve(static_cast<size_t>(span_ / interval) + 1);
    }
    Watcher watcher(cluster.Connect(), lanes);
    watcher.Look();
    std::atomic<bool> written = false;
    std::jthread watch([&] {
      // Rows of the last moments are waited for.
      for (auto deadline = base::Deadline::Never(); !deadline.passed();) {
        watcher.Look();
        if (written) {
          deadline = deadline.Min(base::Deadline::After(kCatchUpMax));
          bool all = true;
          for (const auto& lane : lanes) all = all && lane.seen.size() >= lane.committed.size();
          if (all) return;
        }
        std::this_thread::sleep_for(kLookInterval);
      }
    });
    const auto begin = Clock::now() + std::chrono::milliseconds(100);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < writers; ++i) {
        threads.emplace_back(
            Write, source_cluster_.Connect(), static_cast<int>(i), std::ref(lanes[i]),
            begin + interval * static_cast<int64_t>(i) / static_cast<int64_t>(writers),
            begin + span_, interval, spread ? tables_ : 0);
      }
    }
    written = true;
    watch.join();
    check();
    Latencies latencies;
    for (const auto& lane : lanes) {
      if (lane.seen.size() < lane.committed.size()) {
        throw std::runtime_error("rows that were committed did not become visible");
      }
      for (size_t i = 0; i < lane.committed.size(); ++i) {
        latencies.milliseconds.push_back(
            std::chrono::duration<double, std::milli>(lane.seen[i] - lane.committed[i]).count());
      }
      next_seq_ = std::max(next_seq_, lane.first + static_cast<int64_t>(lane.committed.size()));
    }
    latencies.reached = static_cast<double>(latencies.milliseconds.size()) /
                        std::chrono::duration<double>(span_).count();
    return latencies;
  }

  const CommandLine& line_;
  int64_t tables_;
  Clock::duration span_;
  DurableCluster source_cluster_, native_cluster_, store_cluster_;
  pg::Connection source_, native_, store_;
  std::optional<NativeSubscription> subscription_;
  int64_t next_seq_ = 0, probes_ = 0;
};

void Measure(int argc, char** argv) {
  CommandLine line("Measures how soon a commit of the source is visible in the store.");
  int64_t seconds = 20, tables = 200;
  std::vector<std::string> rates = {"0", "200", "1000"};
  line.Add("--seconds", seconds, "how long to write at each rate");
  line.Add("--rate", rates, "commits per second; 0: one every 500 ms");
  line.Add("--tables", tables, "over how many tables updates are spread, at 200 commits/s; 0: not measured");
  line.Read(argc, argv);
  if (line.quick) {
    seconds = 2;
    tables = 0;
    rates = {"1000"};
  }

  BoundedRun run(line.limit());
  Latency latency(run, line, static_cast<double>(seconds), tables);
  Say("starting");
  latency.Prepare();
  Report report("latency", {"wanted", "commits/s", "peer", "commits", "p50 ms", "p90 ms",
                            "p99 ms", "most ms"});
  report.Note("seconds at each rate", {static_cast<double>(seconds), 0});
  const auto measure = [&](int64_t rate, bool spread) {
    const auto name = latency.Name(rate, spread);
    const auto add = [&](const std::string& peer, const Latencies& l) {
      const auto& all = l.milliseconds;
      report.Add({name,
                  {l.reached, 1},
                  peer,
                  {static_cast<double>(all.size()), 0},
                  {Percentile(all, 0.5), 2},
                  {Percentile(all, 0.9), 2},
                  {Percentile(all, 0.99), 2},
                  {Percentile(all, 1), 2}});
    };
    const auto native = latency.OfSubscription(rate, spread);
    add("native", native);
    const auto ours = latency.OfTidemark(rate, spread);
    add("tidemark", ours);
    for (const auto& [part, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}}) {
      const bool set = rate == 1000 && !spread;
      report.Figure(fmt::format("commit to visible, {}, {}: ms", name, part),
                    {Percentile(ours.milliseconds, share), 2},
                    !set ? "" : share < 0.9 ? "8" : "40");
      report.Figure(
          fmt::format("commit to visible, {}, {}: Tidemark / native", name, part),
          {Percentile(ours.milliseconds, share) / Percentile(native.milliseconds, share), 2}, "");
    }
  };
  for (const auto& rate : rates) measure(std::stoll(rate), false);
  if (tables > 0) measure(200, true);
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
