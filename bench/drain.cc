// How fast a backlog is drained, beside peers that drain the same backlog in the same run:
// pg_recvlogical, which only receives it, and PostgreSQL's own subscription, which keeps no
// history. Each has a slot of its own from before the backlog was written, and drains it alone.
#include <fmt/format.h>
#include <fcntl.h>
#include <unistd.h>

#include <map>

#include "base/child_process.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/native_subscription.h"
#include "bench/polling.h"
#include "bench/report.h"
#include "bench/statement_costs.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kDrainMax{30};

// What one peer needed for one part of the backlog.
struct Cost {
  double seconds = 0;
  double source_cpu = 0, process_cpu = 0, store_cpu = 0;
  int64_t store_log_bytes = 0;
};

struct Drained {
  Cost single, bulk;
  bool parted = true;  // false: only their sums are known
  int64_t peak_resident = 0;
  double hot_share = -1;
};

// One part of the backlog ends at each.
struct Mark {
  int64_t value = 0;
  base::Lsn end;
};

// Watches one peer at work: time and processor time since the last Lap.
class Meter {
 public:
  Meter(const DurableCluster& source, const DurableCluster* store, const MirrorProcess* process)
      : source_(source), store_(store), process_(process) {
    Lap();
  }
  /// Processes that began after the meter have used nothing before.
  void Attach(const MirrorProcess& process) { process_ = &process; }
  Cost Lap() {
    const Cost cost = {watch_.seconds(), Take(source_cpu_, source_.ProcessorSeconds()),
                       Take(process_cpu_, process_ ? ProcessorSecondsOf(process_->pid()) : 0),
                       Take(store_cpu_, store_ ? store_->ProcessorSeconds() : 0),
                       static_cast<int64_t>(Take(log_bytes_, store_ ? static_cast<double>(
                                                                          store_->LogBytes())
                                                                    : 0))};
    watch_ = Stopwatch();
    return cost;
  }

 private:
  static double Take(double& before, double now) { return now - std::exchange(before, now); }
  const DurableCluster& source_;
  const DurableCluster* store_;
  const MirrorProcess* process_;
  double source_cpu_ = 0, process_cpu_ = 0, store_cpu_ = 0, log_bytes_ = 0;
  Stopwatch watch_;
};

// Updates of a table so far, and how many of them were HOT.
struct Updates {
  double all = 0, hot = 0;
  static Updates Of(pg::Connection& on, const std::string& table) {
    on.Execute("SELECT pg_stat_clear_snapshot()");
    const auto row = on.Execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = $1::regclass",
        {table});
    return {static_cast<double>(row.int64(0, 0)), static_cast<double>(row.int64(0, 1))};
  }
};

class Drain {
 public:
  Drain(BoundedRun& run, const CommandLine& line, const Backlog& backlog, bool statements)
      : line_(line),
        backlog_(backlog),
        statements_(statements),
        source_cluster_(run, {"wal_level = logical"}),
        native_cluster_(run, StoreSettings(line, statements)),
        store_cluster_(run, StoreSettings(line, statements)),
        source_(source_cluster_.Connect()),
        native_(native_cluster_.Connect()),
        store_(store_cluster_.Connect()) {}

  void Prepare() {
    Say(fmt::format("filling the source: {} rows", backlog_.rows));
    CreateLedger(source_, /*keyed=*/true);
    FillLedger(source_, backlog_.rows);
    source_.Execute("SELECT pg_create_logical_replication_slot('recvlogical', 'pgoutput')");
    Say("copying to the native subscription");
    CreateLedger(native_, /*keyed=*/true);
    subscription_.emplace(source_cluster_.Dsn(), "tidemark", native_, kDrainMax);
    subscription_->Disable();
    native_.Execute("VACUUM (ANALYZE, FREEZE) public.ledger");
    Say("copying to tidemark");
    auto mirror = Mirror();
    AwaitFirstCopy(*mirror, store_, kDrainMax);
    mirror->Stop();
    current_ = store_.Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset");
    // As after some hours of life; a subscription's table is treated alike.
    store_.Execute("VACUUM (ANALYZE, FREEZE) " + current_);
    if (statements_) StatementCosts::Install(store_);
  }

  void WriteBacklog(int64_t round) {
    Say("writing the backlog");
    Stopwatch watch;
    WriteSingle(source_, backlog_, round * 2);
    single_ = {round * 2 + 1, {}};
    single_.end = WriteMarker(source_, single_.value);
    WriteBulk(source_, backlog_, round * 2 + 1);
    bulk_ = {round * 2 + 2, {}};
    bulk_.end = WriteMarker(source_, bulk_.value);
    Say(fmt::format("written in {:.1f} s", watch.seconds()));
  }

  Drained ByRecvlogical() {
    Say("pg_recvlogical drains");
    Settle();
    Meter meter(source_cluster_, nullptr, nullptr);
    Drained drained;
    for (auto [mark, cost] : {std::pair(&single_, &drained.single), {&bulk_, &drained.bulk}}) {
      std::string output;
      const auto ended = base::RunToEnd(
          {.command = {(tests::ServerBinaries() / "pg_recvlogical").string(), "-d",
                       source_cluster_.Dsn(), "--slot=recvlogical", "--start", "--no-loop",
                       "--file=/dev/null", "--endpos=" + mark->end.ToString(), "--option",
                       "proto_version=1", "--option", "publication_names=tidemark", "--option",
                       "binary=true"},
           .environment = {},
           .account = std::nullopt,
           .folder = "/",
           .output_fd = -1,
           .kept_fds = {},
           .dies_with_parent = true},
          &output, base::Deadline::After(kDrainMax));
      if (!ended.ok()) throw std::runtime_error("pg_recvlogical: " + output);
      *cost = meter.Lap();
    }
    return drained;
  }

  Drained BySubscription() {
    Say("the native subscription drains");
    Settle();
    const auto before = Updates::Of(native_, "public.ledger");
    Meter meter(source_cluster_, &native_cluster_, nullptr);
    subscription_->Enable();
    auto drained = Watch(native_, meter, [] {});
    subscription_->Disable();
    drained.hot_share = HotShare(native_, "public.ledger", before);
    return drained;
  }

  Drained ByTidemark() {
    Say("tidemark drains");
    Settle();
    if (statements_) StatementCosts::Reset(store_);
    const auto before = Updates::Of(store_, current_);
    Meter meter(source_cluster_, &store_cluster_, nullptr);
    auto mirror = Mirror();
    meter.Attach(*mirror);
    auto drained = Watch(store_, meter, [&] { mirror->RequireRunning(); });
    drained.peak_resident = PeakResidentBytesOf(mirror->pid());
    if (statements_) StatementCosts::Load(store_).Print();
    mirror->Stop();
    drained.hot_share = HotShare(store_, current_, before);
    return drained;
  }

  /// Throws when the peers' rows are not the source's.
  std::string Verify() {
    Say("comparing contents");
    const auto wanted = LedgerContents(source_);
    for (auto* on : {&native_, &store_}) {
      const auto found = LedgerContents(*on);
      if (found != wanted) {
        throw std::runtime_error(fmt::format("the {} has {}, the source {}",
                                             on == &store_ ? "mirror" : "subscription", found,
                                             wanted));
      }
    }
    return wanted;
  }

 private:
  static std::vector<std::string> StoreSettings(const CommandLine& line, bool statements) {
    std::vector<std::string> settings = {"wal_level = replica"};
    if (statements) settings.push_back(StatementCosts::kSetting);
    settings.insert(settings.end(), line.store_settings.begin(), line.store_settings.end());
    return settings;
  }

  std::unique_ptr<MirrorProcess> Mirror() {
    return std::make_unique<MirrorProcess>(
        MirrorProcess::Options{.program = line_.tidemark,
                               .source_dsn = source_cluster_.Dsn(),
                               .store_dsn = store_cluster_.Dsn(),
                               .log = log_.path() / "tidemark.log"});
  }

  void Settle() {
    for (auto* cluster : {&source_cluster_, &native_cluster_, &store_cluster_}) cluster->Settle();
  }

  template <typename Check>
  Drained Watch(pg::Connection& on, Meter& meter, Check check) {
    Drained drained;
    const auto reach = [&](const Mark& mark) {
      PollUntil("the end of the backlog", kDrainMax, [&] {
        check();
        return MarkerReached(on, mark.value);
      });
      return meter.Lap();
    };
    PollUntil("the end of the first part", kDrainMax, [&] {
      check();
      return MarkerReached(on, single_.value) || MarkerReached(on, bulk_.value);
    });
    // A reader that publishes many commits at once may show both ends together.
    drained.parted = MarkerReached(on, single_.value);
    drained.single = meter.Lap();
    drained.bulk = reach(bulk_);
    return drained;
  }

  static double HotShare(pg::Connection& on, const std::string& table, const Updates& before) {
    // Counters arrive with a moment's delay.
    Updates now;
    PollUntil("the statistics", std::chrono::seconds(20), [&] {
      const auto newest = Updates::Of(on, table);
      const bool same = newest.all == now.all && newest.all > before.all;
      now = newest;
      return same;
    });
    return (now.hot - before.hot) / (now.all - before.all);
  }

  const CommandLine& line_;
  Backlog backlog_;
  bool statements_;
  tests::TemporaryFolder log_;
  DurableCluster source_cluster_, native_cluster_, store_cluster_;
  pg::Connection source_, native_, store_;
  std::optional<NativeSubscription> subscription_;
  std::string current_;
  Mark single_, bulk_;
};

class Summary {
 public:
  explicit Summary(const Backlog& backlog)
      : backlog_(backlog),
        report_("drain", {"round", "peer", "single/s", "bulk/s", "changes/s", "seconds",
                          "us/change", "cpu source", "cpu process", "cpu store",
                          "cpu us/change", "log MB", "HOT %", "peak MB"}) {
    report_.Note("rows", {static_cast<double>(backlog.rows), 0});
    report_.Note("one-row transactions", {static_cast<double>(backlog.single), 0});
    report_.Note("changes in bulk transactions",
                 {static_cast<double>(backlog.bulk_changes()), 0});
  }

  void Add(int64_t round, const std::string& peer, const Drained& d) {
    const auto singles = static_cast<double>(backlog_.single);
    const auto bulks = static_cast<double>(backlog_.bulk_changes());
    const double changes = singles + bulks;
    const double seconds = d.single.seconds + d.bulk.seconds;
    const auto sum = [&](double Cost::* part) { return d.single.*part + d.bulk.*part; };
    const double receiving = sum(&Cost::process_cpu) + sum(&Cost::store_cpu);
    if (d.parted) {
      rates_[peer]["single"].push_back(singles / d.single.seconds);
      rates_[peer]["bulk"].push_back(bulks / d.bulk.seconds);
    }
    rates_[peer]["all"].push_back(changes / seconds);
    report_.Add({{static_cast<double>(round), 0},
                 peer,
                 d.parted ? Cell(singles / d.single.seconds, 0) : Cell(),
                 d.parted ? Cell(bulks / d.bulk.seconds, 0) : Cell(),
                 {changes / seconds, 0},
                 {seconds, 2},
                 {seconds / changes * 1e6, 1},
                 {sum(&Cost::source_cpu), 1},
                 {sum(&Cost::process_cpu), 1},
                 {sum(&Cost::store_cpu), 1},
                 {receiving / changes * 1e6, 1},
                 {static_cast<double>(d.single.store_log_bytes + d.bulk.store_log_bytes) / 1e6, 0},
                 d.hot_share < 0 ? Cell() : Cell(d.hot_share * 100, 1),
                 d.peak_resident == 0 ? Cell()
                                      : Cell(static_cast<double>(d.peak_resident) / 1e6, 0)});
  }

  void Publish(const std::string& contents, const std::string& json_file) {
    for (const std::string peer : {"native", "recvlogical"}) {
      for (const std::string part : {"single", "bulk", "all"}) {
        if (rates_["tidemark"][part].empty()) continue;
        report_.Note(fmt::format("tidemark / {}, {}", peer, part),
                     {Median(rates_["tidemark"][part]) / Median(rates_[peer][part]), 2});
      }
    }
    report_.Note("contents equal", contents);
    report_.Publish(json_file);
  }

 private:
  Backlog backlog_;
  Report report_;
  std::map<std::string, std::map<std::string, std::vector<double>>> rates_;
};

void Measure(int argc, char** argv) {
  CommandLine line("Drains one backlog by pg_recvlogical, by a native subscription, by Tidemark.");
  Backlog backlog{.rows = 1'000'000, .single = 200'000, .bulk = 300};
  int64_t rounds = 1;
  bool statements = false;
  line.Add("--rows", backlog.rows, "rows of the table");
  line.Add("--single", backlog.single, "transactions that update one row");
  line.Add("--bulk", backlog.bulk, "transactions that update 1,000 rows");
  line.Add("--repeat", rounds, "how often a backlog is written and drained");
  line.Add("--statements", statements, "also show what the store's statements cost");
  line.Read(argc, argv);
  if (line.quick) backlog = {.rows = 100'000, .single = 20'000, .bulk = 30};

  BoundedRun run(line.limit());
  Drain drain(run, line, backlog, statements);
  Summary summary(backlog);
  drain.Prepare();
  std::string contents;
  for (int64_t round = 1; round <= rounds; ++round) {
    drain.WriteBacklog(round);
    summary.Add(round, "recvlogical", drain.ByRecvlogical());
    summary.Add(round, "native", drain.BySubscription());
    summary.Add(round, "tidemark", drain.ByTidemark());
    contents = drain.Verify();
  }
  summary.Publish(contents, line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
