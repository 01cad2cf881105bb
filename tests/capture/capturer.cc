// The capturing process of the crash tests: one capture, or death on the way.
//   capturer SOURCE_DSN STORE_DSN MEMBER…
// A member is a RELATION or RELATION:CURSOR in public, with key id, or a mirror, @PUBLICATION/SLOT.
#include <csignal>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "capture/capture_run.h"
#include "source/postgres/postgres_relation.h"

int main(int argc, char** argv) {
  using namespace tidemark;
  if (argc < 4) {
    std::fprintf(stderr, "usage: capturer SOURCE_DSN STORE_DSN MEMBER...\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  base::OpenLog();
  capture::CaptureOptions options{.store_dsn = argv[2], .history = {.rows_aimed = 500}};
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.starts_with('@')) {
      const auto slash = text.find('/');
      capture::PlannedDataset mirror{.name = "shop",
                                     .in_store = {},
                                     .strategy = temporal::Strategy::kCdc,
                                     .key = {},
                                     .cursor = "",
                                     .overlap = "",
                                     .source = "shop",
                                     .source_kind = "postgres",
                                     .open = nullptr};
      mirror.mirror = capture::MirrorOptions{.name = "shop",
                                             .source_dsn = argv[1],
                                             .store_dsn = "",
                                             .publication = text.substr(1, slash - 1),
                                             .slot = text.substr(slash + 1)};
      options.datasets.push_back(std::move(mirror));
      continue;
    }
    const auto colon = text.find(':');
    const std::string relation = text.substr(0, colon);
    const bool cursor = colon != std::string::npos;
    options.datasets.push_back(
        {.name = "public." + relation,
         .in_store = {"public", relation},
         .strategy = cursor ? temporal::Strategy::kCursor : temporal::Strategy::kSnapshot,
         .key = {"id"},
         .cursor = cursor ? text.substr(colon + 1) : "",
         .overlap = "",
         .source = "shop",
         .source_kind = "postgres",
         .open = [from = source::PostgresOptions{.dsn = argv[1],
                                                 .relation = "public." + relation,
                                                 .snapshot = ""}] {
           return source::OpenPostgresRelation(from);
         },
         .mirror = std::nullopt});
  }
  try {
    const auto report = capture::RunCapture(options, {});
    if (const auto failure = report.Failure()) std::fprintf(stderr, "%s\n",
                                                            failure->Full().c_str());
    return report.Failure() ? 1 : 0;
  } catch (const base::Error& error) {
    std::fprintf(stderr, "%s\n", error.Full().c_str());
    return 1;
  }
}
