// The store that Tidemark runs itself: an ordinary PostgreSQL cluster below DIR, made once, reached
// over a Unix socket only, supervised as a child process. Not the tables in it (store.h). As root
// the server runs as the account `postgres`. One thread, which must outlive the object.
//
//   absent ──initdb──► DIR/store.creating ──rename──► stopped ──Start──► starting ──► ready
//                      (erased at next start)            ▲                              │
//                                                        └──────── Stop, crash ─────────┘
// Durable: absent, stopped. A server that outlived its tidemark (SIGKILL) holds DIR/store.lock; the
// next Start shuts it down cleanly first, so two never work on one data directory.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "base/child_process.h"
#include "pg/connection.h"
#include "temporal/store_database.h"
#include "temporal/store_layout.h"

namespace tidemark::temporal {

class EmbeddedStore {
 public:
  struct Options {
    std::filesystem::path folder;  // DIR; made when it does not exist
    bool allow_volatile_store = false;
    std::chrono::milliseconds start_limit = std::chrono::minutes(15);  // crash recovery included
    std::chrono::milliseconds stop_limit = std::chrono::seconds(60);
  };

  /// Makes the cluster if there is none, starts it and waits until it answers. Throws 55000 (no
  /// fit server binaries, folder the server's account cannot enter, data directory of a version
  /// that is not installed, volatile), 55006 (another server works on it), 53100 (disk full),
  /// 58000 with the log's last lines (it did not start), 57014 (stop requested).
  static EmbeddedStore Start(const Options& options, std::stop_token stop);
  EmbeddedStore(EmbeddedStore&&) noexcept = default;
  EmbeddedStore& operator=(EmbeddedStore&&) = delete;
  ~EmbeddedStore();

  const StoreLayout& layout() const { return layout_; }
  /// Readable once the server has ended.
  int pid_fd() const { return server_.pid_fd(); }
  pid_t pid() const { return server_.pid(); }
  /// A connection to template1, to make databases and roles with.
  pg::Connection ConnectForMaintenance(base::Deadline deadline, std::stop_token stop = {}) const;
  /// EnsureDatabase, and remembers the name in DIR/database for other processes.
  void PrepareDatabase(const DatabaseShape& shape, base::Deadline deadline, std::stop_token stop);
  /// The server is no longer there; Restart() brings it back.
  bool HasEnded();
  /// Starts the server again after it ended; same errors as Start.
  void Restart(std::stop_token stop);
  /// Shuts the server down: fast; at the limit immediately (it recovers at the next start).
  void Stop() noexcept;

 private:
  EmbeddedStore(Options options, StoreLayout layout, base::Account account,
                base::ChildProcess server)
      : options_(std::move(options)),
        layout_(std::move(layout)),
        account_(std::move(account)),
        server_(std::move(server)) {}

  Options options_;
  StoreLayout layout_;
  base::Account account_;
  base::ChildProcess server_;
};

}  // namespace tidemark::temporal
