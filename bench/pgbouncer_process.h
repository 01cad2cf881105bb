// PgBouncer as a peer of the gateway: another proxy in front of the same store, one server session
// for each client, until the object goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/child_process.h"

namespace tidemark::bench {

/// Where the program is; nullopt when it is not installed.
std::optional<std::filesystem::path> FindPgbouncer();

class PgbouncerProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::string store_host;  // the folder of its socket
    int store_port = 0;
    std::filesystem::path folder;  // for its configuration; the server's account may enter it
  };
  /// Starts it and waits until it listens.
  explicit PgbouncerProcess(const Options& options);
  PgbouncerProcess(const PgbouncerProcess&) = delete;
  PgbouncerProcess& operator=(const PgbouncerProcess&) = delete;

  uint16_t port() const { return port_; }
  int pid() const { return process_->pid(); }

 private:
  uint16_t port_ = 0;
  std::optional<base::ChildProcess> process_;
};

}  // namespace tidemark::bench
