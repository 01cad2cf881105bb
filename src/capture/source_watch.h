// Looks now and then at what the stream of a mirror does not tell: which tables the publication
// has, where their rows lie and by which rules they are sent, and which tables somebody has asked
// to be read again. A thread with connections of its own; its failures are logged and it goes on.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/lsn.h"
#include "capture/mirror_options.h"
#include "pg/connection.h"
#include "source/postgres/inheritance.h"
#include "source/postgres/table_state.h"

namespace tidemark::capture {

/// One look.
struct SourceView {
  base::Deadline::Clock::time_point began;  // when it was begun
  base::Lsn seen_at;  // the source's log ended at or before it; the stream is to come as far first
  std::vector<source::TableState> tables;
  std::vector<source::InheritedTable> inheritance;
  std::vector<int> resyncs;  // datasets with an open request
};

/// Looks once.
SourceView LookAtSource(pg::Connection& source, pg::Connection& store,
                        const std::string& publication, int journal);

class SourceWatch {
 public:
  SourceWatch(const MirrorOptions& options, int journal);
  ~SourceWatch() = default;  // stops and joins

  /// The newest view, once.
  std::optional<SourceView> Take();

 private:
  void Run(const MirrorOptions& options, int journal, const std::stop_token& stop);

  std::mutex mutex_;
  std::optional<SourceView> view_;
  std::jthread thread_;
};

}  // namespace tidemark::capture
