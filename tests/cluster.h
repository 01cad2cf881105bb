// Throwaway PostgreSQL clusters for tests: real servers in temporary folders, reachable over a Unix
// socket only, gone when the object is. As root the server runs as the user `postgres`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"

namespace tidemark::tests {

/// The server binaries: TIDEMARK_PG_BINDIR, or the newest of /usr/lib/postgresql/*/bin that is
/// fit (15 or newer), or pg_config --bindir.
std::filesystem::path ServerBinaries();

/// The binaries of sources, where source and store are two clusters: TIDEMARK_SOURCE_BINDIR, or
/// those of the store.
std::filesystem::path SourceBinaries();

class Cluster {
 public:
  /// `settings` are `name = value` lines for postgresql.conf; `port = N` is the port of its
  /// sockets. Logical decoding is on by default (wal_level = logical), fsync off unless `durable`.
  /// `binaries` are the servers', of any version.
  explicit Cluster(std::vector<std::string> settings = {}, bool durable = false,
                   std::filesystem::path binaries = ServerBinaries());
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// A libpq string for `database` as the superuser `postgres`.
  std::string Dsn(const std::string& database = "postgres") const;
  pg::Connection Connect(const std::string& database = "postgres") const;
  /// A new database; returns its DSN.
  std::string CreateDatabase(const std::string& name);
  const std::filesystem::path& directory() const { return directory_; }
  /// The folder of the Unix socket; the port is port().
  std::string host() const { return directory_.string(); }
  int port() const { return port_; }
  void Start();
  /// mode: "fast" or "immediate" (as a crash).
  void Stop(const std::string& mode = "fast");

  /// One cluster for a whole test program, started at first use: wal_level logical, fsync off.
  static Cluster& Shared();
  /// The one for sources: the same, unless TIDEMARK_SOURCE_BINDIR asks for servers of its own.
  static Cluster& SharedSource();

 private:
  std::filesystem::path binaries_, directory_;
  int port_ = 5432;
  bool running_ = false;
};

/// Runs a command and returns its exit code; `output` receives stdout and stderr together.
int Run(const std::vector<std::string>& command, std::string* output = nullptr);

/// `command` as it must be started for a PostgreSQL server: through runuser when we are root.
std::vector<std::string> AsServerUser(std::vector<std::string> command);

/// A temporary folder that PostgreSQL's user may use; removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tidemark::tests
