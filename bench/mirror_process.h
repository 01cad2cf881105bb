// `tidemark follow` as a process of its own: from one source into one store, until stopped.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/child_process.h"
#include "pg/connection.h"

namespace tidemark::bench {

class MirrorProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::string source_dsn, store_dsn;
    std::filesystem::path log;  // appended to
  };
  explicit MirrorProcess(const Options& options);
  ~MirrorProcess();
  MirrorProcess(const MirrorProcess&) = delete;
  MirrorProcess& operator=(const MirrorProcess&) = delete;

  /// Ends it as a service manager would; throws when it does not end within a minute.
  void Stop();
  int pid() const { return process_->pid(); }
  /// Throws, with the end of its log, when it runs no more.
  void RequireRunning();

 private:
  std::filesystem::path log_;
  std::optional<base::ChildProcess> process_;
};

/// Waits until the mirror's first copy is readable in the store.
void AwaitFirstCopy(MirrorProcess& mirror, pg::Connection& store, std::chrono::minutes limit);

}  // namespace tidemark::bench
