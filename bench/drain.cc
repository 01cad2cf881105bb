// How fast a backlog is drained, beside peers that drain the same backlog in the same run; what it
// costs in processor time, log and memory.
#include <fmt/format.h>

#include <map>

#include "bench/backlog_drain.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

class Summary {
 public:
  /// `native`: what the subscription is called.
  Summary(const Backlog& backlog, std::string native)
      : backlog_(backlog),
        native_(std::move(native)),
        report_("drain", {"round", "peer", "single/s", "bulk/s", "changes/s", "seconds",
                          "us/change", "cpu source", "cpu process", "cpu store", "cpu us/change",
                          "log MB", "HOT %", "peak MB"}) {
    report_.Note("rows", {static_cast<double>(backlog.rows), 0});
    report_.Note("one-row transactions", {static_cast<double>(backlog.single), 0});
    report_.Note("changes in bulk transactions", {static_cast<double>(backlog.bulk_changes()), 0});
    report_.Note("tables beside it", {static_cast<double>(backlog.sides), 0});
  }

  void Add(int64_t round, const std::string& peer, const Drained& d) {
    const auto singles = static_cast<double>(backlog_.single);
    const auto bulks = static_cast<double>(backlog_.bulk_changes());
    const double changes = singles + bulks;
    const double seconds = d.single.seconds + d.bulk.seconds;
    const auto sum = [&](double Cost::*part) { return d.single.*part + d.bulk.*part; };
    const double receiving = sum(&Cost::process_cpu) + sum(&Cost::store_cpu);
    if (d.parted) {
      rates_[peer]["single"].push_back(singles / d.single.seconds);
      rates_[peer]["bulk"].push_back(bulks / d.bulk.seconds);
    }
    rates_[peer]["all"].push_back(changes / seconds);
    report_.Add(
        {{static_cast<double>(round), 0},
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
         d.peak_resident == 0 ? Cell() : Cell(static_cast<double>(d.peak_resident) / 1e6, 0)});
  }

  void Publish(const std::string& contents, const std::string& json_file) {
    const std::string work = backlog_.inserts ? "drain of inserts"
                             : backlog_.tally ? "drain of equal rows without a key"
                                              : "drain";
    for (const std::string& peer : {native_, std::string("recvlogical")}) {
      for (const std::string part : {"single", "bulk", "all"}) {
        if (rates_["tidemark"][part].empty()) continue;
        report_.Figure(fmt::format("{}, {}: Tidemark's rate / {}", work, part, peer),
                       {Median(rates_["tidemark"][part]) / Median(rates_[peer][part]), 2},
                       part == "all" ? ToReach(peer) : "");
      }
    }
    report_.Note("contents equal", contents);
    report_.Publish(json_file);
  }

 private:
  std::string ToReach(const std::string& peer) const {
    if (backlog_.tally) return "";
    if (peer == "recvlogical") return backlog_.inserts ? "" : "0.5";
    if (peer != "native") return "4";
    return backlog_.inserts ? "2" : "1.3";
  }
  Backlog backlog_;
  std::string native_;
  Report report_;
  std::map<std::string, std::map<std::string, std::vector<double>>> rates_;
};

void Measure(int argc, char** argv) {
  CommandLine line("Drains one backlog by pg_recvlogical, by a native subscription, by Tidemark.");
  Backlog backlog{.rows = 1'000'000, .single = 200'000, .bulk = 300};
  int64_t rounds = 1;
  bool statements = false, history = false;
  line.Add("--rows", backlog.rows, "rows of the table");
  line.Add("--single", backlog.single, "transactions that update one row");
  line.Add("--bulk", backlog.bulk, "transactions that update 1,000 rows");
  line.Add("--repeat", rounds, "how often a backlog is written and drained");
  line.Add("--tables", backlog.sides, "how many tables are published beside it, and never change");
  line.Add("--inserts", backlog.inserts, "insert new rows instead of updating");
  line.Add("--tally", backlog.tally, "update a table without a key, whose rows are often equal");
  line.Add("--native-history", history, "the subscription keeps history, too, by a trigger");
  line.Add("--statements", statements, "also show what the store's statements cost");
  line.Read(argc, argv);
  if (line.quick) {
    backlog.rows = backlog.tally ? 5'000 : 50'000;
    backlog.single = backlog.tally ? 500 : 10'000;
    backlog.bulk = backlog.tally ? 4 : 15;
  }
  if (backlog.tally && (backlog.inserts || history)) {
    throw std::runtime_error("--tally goes with neither --inserts nor --native-history");
  }

  BoundedRun run(line.limit());
  BacklogDrain drain(run, line, backlog, statements, history);
  const std::string native = history ? "native with a history trigger" : "native";
  Summary summary(backlog, native);
  drain.Prepare();
  std::string contents;
  for (int64_t round = 1; round <= rounds; ++round) {
    drain.WriteBacklog(round);
    summary.Add(round, "recvlogical", drain.ByRecvlogical());
    summary.Add(round, native, drain.BySubscription());
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
