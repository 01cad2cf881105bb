#include "bench/backlog_drain.h"

#include <fmt/format.h>

#include <utility>

#include "base/child_process.h"
#include "bench/polling.h"
#include "bench/report.h"
#include "bench/statement_costs.h"

namespace tidemark::bench {

namespace {

constexpr std::chrono::minutes kDrainMax{30};

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

double HotShare(pg::Connection& on, const std::string& table, const Updates& before) {
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

// As people do it: what a row was until now, and until when.
void KeepHistoryByTrigger(pg::Connection& on) {
  on.Execute(R"sql(
CREATE TABLE public.ledger_history (LIKE public.ledger, ended_at timestamptz NOT NULL);
CREATE INDEX ON public.ledger_history (id, ended_at);
CREATE FUNCTION public.keep_former_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.ledger_history SELECT OLD.*, clock_timestamp();
  RETURN NULL;
END $$;
CREATE TRIGGER history AFTER UPDATE OR DELETE ON public.ledger
FOR EACH ROW EXECUTE FUNCTION public.keep_former_row();
ALTER TABLE public.ledger ENABLE ALWAYS TRIGGER history
)sql");
}

std::vector<std::string> StoreSettings(const CommandLine& line, bool statements) {
  std::vector<std::string> settings = {"wal_level = replica"};
  if (statements) settings.emplace_back(StatementCosts::kSetting);
  settings.insert(settings.end(), line.store_settings.begin(), line.store_settings.end());
  return settings;
}

}  // namespace

// Watches one peer at work: time and processor time since the last Lap.
class BacklogDrain::Meter {
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
                       static_cast<int64_t>(
                           Take(log_bytes_, store_ ? static_cast<double>(store_->LogBytes()) : 0))};
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

BacklogDrain::BacklogDrain(BoundedRun& run, const CommandLine& line, const Backlog& backlog,
                           bool statements, bool native_history)
    : line_(line),
      backlog_(backlog),
      statements_(statements),
      native_history_(native_history),
      source_cluster_(run, {"wal_level = logical"}),
      native_cluster_(run, StoreSettings(line, statements)),
      store_cluster_(run, StoreSettings(line, statements)),
      source_(source_cluster_.Connect()),
      native_(native_cluster_.Connect()),
      store_(store_cluster_.Connect()) {}

std::unique_ptr<MirrorProcess> BacklogDrain::Mirror() {
  return std::make_unique<MirrorProcess>(
      MirrorProcess::Options{.program = line_.tidemark,
                             .source_dsn = source_cluster_.Dsn(),
                             .store_dsn = store_cluster_.Dsn(),
                             .log = store_cluster_.directory() / "tidemark.log"});
}

void BacklogDrain::Settle() {
  for (auto* cluster : {&source_cluster_, &native_cluster_, &store_cluster_}) cluster->Settle();
}

void BacklogDrain::Prepare() {
  Say(fmt::format("filling the source: {} rows", backlog_.rows));
  CreateLedger(source_, /*keyed=*/true);
  FillLedger(source_, backlog_.tally ? 0 : backlog_.rows);
  if (backlog_.tally) {
    CreateTally(source_);
    FillTally(source_, backlog_.rows);
  }
  CreateSides(source_, backlog_.sides);
  for (int64_t i = 0; i < backlog_.sides; ++i) {
    source_.Execute(fmt::format("ALTER PUBLICATION tidemark ADD TABLE public.side_{}", i));
  }
  source_.Execute("SELECT pg_create_logical_replication_slot('recvlogical', 'pgoutput')");
  Say("copying to the native subscription");
  CreateLedger(native_, /*keyed=*/true);
  if (backlog_.tally) CreateTally(native_);
  CreateSides(native_, backlog_.sides);
  subscription_.emplace(source_cluster_.Dsn(), "tidemark", native_, kDrainMax);
  subscription_->Disable();
  native_.Execute("VACUUM (ANALYZE, FREEZE) public.ledger");
  if (native_history_) KeepHistoryByTrigger(native_);
  Say("copying to tidemark");
  auto mirror = Mirror();
  AwaitFirstCopy(*mirror, store_, kDrainMax);
  mirror->Stop();
  current_ = store_.Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset "
                          "WHERE table_name = 'ledger'");
  // As after some hours of life; a subscription's table is treated alike.
  store_.Execute("VACUUM (ANALYZE, FREEZE) " + current_);
  if (statements_) StatementCosts::Install(store_);
}

void BacklogDrain::WriteBacklog(int64_t round) {
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

template <typename Check>
Drained BacklogDrain::Watch(pg::Connection& on, Meter& meter, Check check) {
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

Drained BacklogDrain::ByRecvlogical() {
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

Drained BacklogDrain::BySubscription() {
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

Drained BacklogDrain::ByTidemark() {
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

std::string BacklogDrain::Contents(pg::Connection& on) const {
  return LedgerContents(on) + (backlog_.tally ? "; " + TallyContents(on) : "");
}

std::string BacklogDrain::Verify() {
  Say("comparing contents");
  const auto wanted = Contents(source_);
  for (auto* on : {&native_, &store_}) {
    const auto found = Contents(*on);
    if (found != wanted) {
      throw std::runtime_error(fmt::format("the {} has {}, the source {}",
                                           on == &store_ ? "mirror" : "subscription", found,
                                           wanted));
    }
  }
  return wanted;
}

}  // namespace tidemark::bench
