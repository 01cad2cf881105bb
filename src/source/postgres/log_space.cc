#include "source/postgres/log_space.h"

#include <sys/statvfs.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace tidemark::source {

namespace {

// Without the privilege the setting has no row.
constexpr const char* kServer = R"sql(
SELECT d.setting, p.setting::integer,
       extract(epoch FROM pg_catalog.pg_postmaster_start_time())::bigint
FROM pg_catalog.pg_settings d, pg_catalog.pg_settings p
WHERE d.name = 'data_directory' AND p.name = 'port'
)sql";

// The file is written a moment before the server says that it has started.
constexpr int64_t kStartSlackSeconds = 10;

// Its lines: pid, folder, when it started (seconds since 1970), port, …
bool RunsHere(const std::string& folder, int64_t port, int64_t started) {
  std::ifstream file(folder + "/postmaster.pid");
  std::string pid, data_directory;
  int64_t start = 0, own_port = 0;
  if (!std::getline(file, pid) || !std::getline(file, data_directory)) return false;
  if (!(file >> start >> own_port)) return false;
  return own_port == port && std::abs(start - started) <= kStartSlackSeconds;
}

}  // namespace

std::optional<int64_t> FreeLogBytes(pg::Connection& server) {
  const auto row = server.Execute(kServer);
  if (row.rows() != 1) return std::nullopt;
  const std::string folder = row.str(0, 0);
  if (!RunsHere(folder, row.int64(0, 1), row.int64(0, 2))) return std::nullopt;
  struct statvfs disk {};
  if (statvfs((folder + "/pg_wal").c_str(), &disk) != 0) return std::nullopt;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

}  // namespace tidemark::source
