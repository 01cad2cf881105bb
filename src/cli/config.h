// tidemark.yaml as values: what is captured from where, and how it is served. Reading only; nothing
// is connected to. `${NAME}` in a value is replaced by the environment's; a secret `x` may stand in
// a file named by `x_file`. Mistakes throw F0000 with `file:line:column`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "http/occurrences.h"
#include "http/url.h"

namespace tidemark::cli {

inline constexpr const char* kDefaultPublication = "tidemark";

struct PostgresSource {
  std::string dsn;  // a secret
};
struct AdbcSource {
  std::string driver, uri;  // uri is a secret
};
struct FilesSource {
  std::string folder;
};

struct Source {
  std::string name;
  std::variant<PostgresSource, AdbcSource, FilesSource> reached_by;
  /// The connection string of a PostgreSQL source, nullptr for others.
  const std::string* dsn() const;
};

/// How a source's changes are followed, or drained on a cadence.
struct Following {
  bool resync_on_gap = true;  // on_gap: resync, or stop
  bool replace_undecodable = false;    // encoding_errors: replace, or stop
  bool unknown_as_text = false;        // unknown_types: text, or refuse
  bool isolate_failed_tables = false;  // the others go on when changes of one are refused
  std::optional<int64_t> wal_warn_bytes;  // only of what is followed live
};

/// A whole publication: followed live, or captured on its cadence.
struct Mirror {
  std::string name, source;
  std::string publication = kDefaultPublication;
  std::string slot;  // default: capture::SlotNameFor the name
  std::string cadence;  // cron expression; empty: live
  Following following;
  std::string retention;      // how far back history is kept; empty: the common one
  std::map<std::string, std::string> table_retention;  // by schema.table
};

enum class Strategy { kSnapshot, kCursor, kCdc };

/// One relation captured outside a mirror.
struct Dataset {
  std::string name, source, relation;
  Strategy strategy = Strategy::kSnapshot;
  std::vector<std::string> key;
  std::string cursor;   // only of kCursor
  std::string overlap;  // how far a cursor goes back, in its own terms; may be empty
  std::string as;       // schema.table in the store; empty: the dataset's name
  std::string publication, slot;  // only of kCdc; both default to capture::SlotNameFor the name
  Following following;            // only of kCdc
  std::string cadence;  // cron expression; empty: the common one
  std::string retention;
};

/// Where one of the servers listens.
struct Listen {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  bool insecure = false;
  std::string tls_certificate_file, tls_key_file;
  std::optional<bool> tls_required;
  bool IsLoopback() const;
  bool HasTls() const { return !tls_certificate_file.empty(); }
  /// Nobody is served in the clear: as declared, else wherever that would not be safe.
  bool RequiresTls() const;
};

/// What the gateway lets clients take; its own defaults (gateway/options.h) where nothing is said.
struct GatewayLimits {
  std::optional<uint32_t> sessions, startups, startup_bytes, startup_seconds;
};

/// The http server besides where it listens; its own defaults (http/options.h) where nothing is
/// said.
struct HttpServing {
  bool off = false;
  std::string token;  // a secret; empty: nobody need show one
  std::optional<uint32_t> connections, subscribers, body_bytes;
};

/// A receiver that is told of changes.
struct Webhook {
  std::string name;
  http::Url url;                      // a secret
  std::vector<std::string> keys;      // secrets
  std::vector<std::string> datasets;  // declared names, schema.table, or mirrors; empty: all
};

struct Config {
  std::optional<std::string> store_dsn;  // a secret; nullopt: embedded
  std::filesystem::path data = "tidemark-data";
  bool allow_volatile_store = false;
  Listen gateway{.port = 5480};
  GatewayLimits gateway_limits;
  bool gateway_superusers = false;  // whether the store's superusers are served
  Listen http{.port = 8480};
  HttpServing http_serving;
  std::vector<Source> sources;
  std::vector<Mirror> mirrors;
  std::vector<Dataset> datasets;
  std::string cadence;  // cron expression for datasets without their own; may be empty
  bool keep_going = false;  // captures on a cadence publish the members that did not fail
  std::string retention;  // of what has none of its own; empty: for ever
  /// Which datasets may be captured by signed calls, by their declared names; their keys are
  /// secrets.
  std::map<std::string, http::OccurrenceRules> occurrences;
  std::vector<Webhook> webhooks;

  /// nullptr when there is none of that name.
  const Source* FindSource(const std::string& name) const;
};

/// How `${NAME}` is looked up; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The process's environment.
std::optional<std::string> ProcessEnvironment(const std::string& name);

/// Reads a configuration; `file` is its name for messages, and the folder that `*_file` names start
/// from. Checks that names refer to something and that each dataset has what its strategy needs.
Config ReadConfig(const std::string& text, const std::string& file,
                  const Environment& environment = ProcessEnvironment);

/// Reads the file. Throws F0000 when it cannot be read.
Config LoadConfig(const std::filesystem::path& file);

/// The mirror of a source that is named on the command line: source and mirror bear the name of its
/// database.
void AddMirrorOf(Config& config, const std::string& dsn);

}  // namespace tidemark::cli
