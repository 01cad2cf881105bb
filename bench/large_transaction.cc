// One very large transaction, written while nobody reads: how long until it is visible, whole, and
// how much memory Tidemark's process needs for it.
#include <fmt/format.h>

#include "bench/backlog_drain.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

void Measure(int argc, char** argv) {
  CommandLine line("Measures one large transaction beside a native subscription.");
  int64_t changes = 1'000'000;
  bool statements = false;
  line.Add("--changes", changes, "rows that the transaction updates");
  line.Add("--statements", statements, "also show what the store's statements cost");
  line.Read(argc, argv);
  if (line.quick) changes = 50'000;

  BoundedRun run(line.limit());
  BacklogDrain drain(run, line, {.rows = changes, .single = 0, .bulk = 1, .bulk_rows = changes},
                     statements);
  drain.Prepare();
  drain.WriteBacklog(1);
  const auto native = drain.BySubscription();
  const auto ours = drain.ByTidemark();
  const auto contents = drain.Verify();

  Report report("large transaction", {"peer", "seconds", "changes/s", "cpu source", "cpu process",
                                      "cpu store", "log MB", "HOT %", "peak MB"});
  report.Note("changes", {static_cast<double>(changes), 0});
  const auto add = [&](const std::string& peer, const Drained& d) {
    const double seconds = d.single.seconds + d.bulk.seconds;
    report.Add(
        {peer,
         {seconds, 2},
         {static_cast<double>(changes) / seconds, 0},
         {d.single.source_cpu + d.bulk.source_cpu, 1},
         {d.single.process_cpu + d.bulk.process_cpu, 1},
         {d.single.store_cpu + d.bulk.store_cpu, 1},
         {static_cast<double>(d.single.store_log_bytes + d.bulk.store_log_bytes) / 1e6, 0},
         {d.hot_share * 100, 1},
         d.peak_resident == 0 ? Cell() : Cell(static_cast<double>(d.peak_resident) / 1e6, 0)});
    return seconds;
  };
  const double native_seconds = add("native", native);
  const double our_seconds = add("tidemark", ours);
  report.Figure("one large transaction: native's time / Tidemark's", {native_seconds / our_seconds, 2},
                "");
  report.Figure("one large transaction: peak MB", {static_cast<double>(ours.peak_resident) / 1e6, 0},
                "200");
  report.Note("contents equal", contents);
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
