// One run of a command: the options that commands share, as the command line gave them, and the
// configuration that file, environment and flags make together (flags win over TIDEMARK_*
// variables, those over the file).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "cli/config.h"
#include "pg/connection.h"

namespace CLI {
class App;
}

namespace tidemark::cli {

class StopSignals;

/// tidemark.yaml, used when it is there and --config names no other.
inline constexpr const char* kDefaultConfigFile = "tidemark.yaml";

struct Invocation {
  std::string config_file, data, store, source;
  std::optional<uint16_t> port, http_port;
  bool no_http = false;
  bool json = false;
  std::stop_token stop;
  StopSignals* signals = nullptr;  // main's

  /// Reads file, environment and flags. Throws F0000.
  Config Configure() const;
};

// Each adds options to a command; the values land in `invocation`.
void AddConfigOption(CLI::App& command, Invocation& invocation);
void AddStoreOptions(CLI::App& command, Invocation& invocation);   // --config --data --store
void AddSourceOption(CLI::App& command, Invocation& invocation);   // --source
void AddPortOptions(CLI::App& command, Invocation& invocation);    // --port --http-port --no-http
void AddJsonOption(CLI::App& command, Invocation& invocation);     // --json

/// The store's connection string: the configuration's, or the embedded store's in its folder.
std::string StoreDsn(const Config& config);

/// A connection to the store whose schema this program knows. Throws 55000 when there is none.
pg::Connection OpenStoreToRead(const Config& config, const std::stop_token& stop);

/// Throws F0000 when `listen` is reachable from elsewhere without requiring TLS and without
/// `insecure: true`.
void RequireSafeListen(const Listen& listen, const std::string& name);

}  // namespace tidemark::cli
