#include "temporal/cluster_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "temporal/passfile.h"
#include "temporal/server_account.h"
#include "temporal/store_settings.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;
using base::Account;
using base::Deadline;
using base::Error;

namespace {

constexpr base::SqlState kDiskFull{"53100"};
/// An empty cluster takes 40 MB, its first log segments as much.
constexpr uint64_t kRoomBytesMin = uint64_t{200} * 1024 * 1024;
constexpr auto kInitdbLimit = std::chrono::minutes(5);

void RequireRoom(const fs::path& folder) {
  struct statvfs system = {};
  if (::statvfs(folder.c_str(), &system) != 0) return;
  const uint64_t free_bytes = uint64_t{system.f_bavail} * system.f_frsize;
  if (free_bytes >= kRoomBytesMin) return;
  throw Error(kDiskFull, fmt::format("too little room for a store in \"{}\"", folder.string()))
      .Detail(fmt::format("{} MB are free; a new store needs {} MB before its first row.",
                          free_bytes >> 20, kRoomBytesMin >> 20))
      .Hint("Free some space, or name a folder on another disk with --data.");
}

std::string TextOf(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Write(const Account& account, const fs::path& file, const std::string& text) {
  WriteFileWhole(file, text);
  GiveTo(account, file);
}

/// The cluster's own files that differ from what initdb wrote.
void WriteConfiguration(const Account& account, const fs::path& cluster) {
  const auto main_file = cluster / "postgresql.conf";
  Write(account, main_file,
        TextOf(main_file) + "\ninclude = 'tidemark.conf'\ninclude_if_exists = 'local.conf'\n");
  Write(account, cluster / "tidemark.conf", "# filled at start\n");
  Write(account, cluster / "local.conf", "# Settings of yours; they win over tidemark.conf.\n");
  Write(account, cluster / "pg_hba.conf",
        "# Unix socket only, always with a password. The gateway passes each client's own through.\n"
        "local all all scram-sha-256\n");
}

/// Whether the server was built with `method` for wal_compression.
bool KnowsWalCompression(const StoreLayout& layout, const ServerBinaries& binaries,
                         const Account& account, const std::string& method) {
  std::string ignored;
  return base::RunToEnd(AsServer(account, {(binaries.folder / "postgres").string(), "-D",
                                           layout.store.string(), "-c", "wal_compression=" + method,
                                           "-C", "wal_compression"}),
                        &ignored, Deadline::After(std::chrono::seconds(30)))
      .ok();
}

}  // namespace

std::optional<int> ClusterMajor(const StoreLayout& layout) {
  std::error_code none;
  if (!fs::exists(fs::symlink_status(layout.store, none))) return std::nullopt;
  std::ifstream in(layout.store / "PG_VERSION");
  if (int major = 0; in >> major) return major;
  throw Error(base::kNotInPrerequisiteState,
              fmt::format("\"{}\" holds no PostgreSQL cluster of this user",
                          layout.store.string()))
      .Hint("Run tidemark as the user who made the store, or name another folder with --data.");
}

void MakeCluster(const StoreLayout& layout, const ServerBinaries& binaries, const Account& account,
                 const std::stop_token& stop) {
  RequireRoom(layout.folder);
  std::error_code none;
  fs::remove_all(layout.store_being_made, none);
  const auto password = RandomPassword();
  StorePassfileLines(layout.owner_passfile, {{.user = kStoreOwner, .password = password}});
  MakePrivateFolder(account, layout.store_being_made);
  const auto cluster = layout.store_being_made / "cluster";
  const auto password_file = layout.store_being_made / "password";
  Write(account, password_file, password + "\n");

  spdlog::info("making the store in {} (PostgreSQL {})", layout.store.string(), binaries.major);
  std::string output;
  const auto ended = base::RunToEnd(
      AsServer(account, {(binaries.folder / "initdb").string(), "-D", cluster.string(), "-U",
                         kStoreOwner, "-A", "scram-sha-256", "--pwfile", password_file.string(),
                         "-E", "UTF8", "--locale=C", "--data-checksums", "--no-instructions"}),
      &output, Deadline::After(kInitdbLimit), stop);
  if (!ended.ok()) {
    fs::remove_all(layout.store_being_made, none);
    RequireRoom(layout.folder);
    throw Error(base::kSystemError, fmt::format("initdb failed with {}", ended.ToString()))
        .Detail(output);
  }
  WriteConfiguration(account, cluster);
  base::KillPoint("store.before_rename");
  if (::rename(cluster.c_str(), layout.store.c_str()) != 0) {
    throw Error(base::kIoError, fmt::format("could not rename \"{}\": {}", cluster.string(),
                                            std::generic_category().message(errno)));
  }
  if (const int fd = ::open(layout.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
  fs::remove_all(layout.store_being_made, none);
}

void StoreClusterSettings(const StoreLayout& layout, const ServerBinaries& binaries,
                          const Account& account) {
  const bool lz4 = KnowsWalCompression(layout, binaries, account, "lz4");
  Write(account, layout.store / "tidemark.conf",
        StoreSettings(MeasureMachine(), layout.socket_folder, lz4 ? "lz4" : "pglz"));
}

}  // namespace tidemark::temporal
