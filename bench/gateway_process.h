// `tidemark serve` as a process of its own, in front of one store, until the object goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"

namespace tidemark::bench {

/// Settings by which a cluster also listens where the gateway does: so that both sides of a
/// comparison are reached over TCP.
std::vector<std::string> ListeningOnTcp(std::vector<std::string> settings);

class GatewayProcess {
 public:
  struct Options {
    std::filesystem::path program;
    std::string store_dsn;
    std::filesystem::path log;  // appended to
  };
  /// Starts it and waits until it listens.
  explicit GatewayProcess(const Options& options);
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  static constexpr const char* kHost = "127.0.0.1";
  uint16_t port() const { return port_; }
  int pid() const { return process_->pid(); }

 private:
  uint16_t port_ = 0;
  std::optional<base::ChildProcess> process_;
};

}  // namespace tidemark::bench
