// receiver.py as a process, and what it has received.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "tests/cluster.h"

namespace tidemark::tests {

class Receiver {
 public:
  static constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

  /// Answers as receiver.py says; `tls` are certificate and key.
  explicit Receiver(std::vector<std::string> behaviours, std::vector<std::string> tls = {});

  int port() const { return port_; }
  /// Every request so far, in order: {id, verified, path, host, behaviour, connection, event}.
  std::vector<nlohmann::json> Requests() const;
  /// The ids of the events in the order in which they first came; a second coming of one that is
  /// not the newest counts again, so that what is out of order shows.
  std::vector<std::string> Arrivals() const;

 private:
  std::filesystem::path log() const { return folder_.path() / "log"; }

  TemporaryFolder folder_;
  std::optional<base::ChildProcess> process_;
  int port_ = 0;
};

}  // namespace tidemark::tests
