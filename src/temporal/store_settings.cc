#include "temporal/store_settings.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace tidemark::temporal {

namespace {

constexpr int64_t kMegabyte = int64_t{1024} * 1024;

int64_t ContainerMemory() {
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    if (int64_t bytes = 0; in >> bytes && bytes > 0) return bytes;  // "max" is no number
  }
  return INT64_MAX;
}

/// `value` as a string of a configuration file.
std::string Quoted(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += c;
    text += c;
  }
  return text + "'";
}

}  // namespace

Machine MeasureMachine() {
  Machine machine;
  const int64_t physical = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  machine.memory_bytes = std::min(physical, ContainerMemory());
  machine.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  struct statvfs shm = {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    machine.shared_memory_bytes = static_cast<int64_t>(shm.f_blocks * shm.f_frsize);
  }
  return machine;
}

std::string StoreSettings(const Machine& machine, const std::filesystem::path& socket_folder,
                          const std::string& wal_compression) {
  const int64_t memory_mb = machine.memory_bytes / kMegabyte;
  return fmt::format(
      R"(# Written by tidemark at each start. Settings of yours belong into local.conf beside it.

# Reached by its owner over a Unix socket only; readers come through the gateway.
listen_addresses = ''
port = 5432
unix_socket_directories = {socket}
unix_socket_permissions = 0700
password_encryption = 'scram-sha-256'
client_connection_check_interval = 10s  # a query whose client has gone ends

# A basis once published must survive any crash: a source's log is given up on its strength.
fsync = on
full_page_writes = on
synchronous_commit = on
wal_level = replica                    # enough for base backups and standbys of the store

# A quarter of the memory, 128 MB to 2 GB; the rest serves better as the kernel's cache.
shared_buffers = {buffers}MB
effective_cache_size = {cache}MB
# Index builds after a first copy, and vacuum.
maintenance_work_mem = {maintenance}MB
work_mem = {work}MB
# /dev/shm of a container may be too small for parallel queries; files then take its place.
dynamic_shared_memory_type = {shared_memory}

# Every page's first change after a checkpoint is logged whole: few checkpoints, less log.
max_wal_size = 4GB
min_wal_size = 512MB
checkpoint_timeout = 15min
wal_compression = {compression}
wal_buffers = 16MB

max_connections = 200                  # one for each client of the gateway, some for capture
max_locks_per_transaction = 512        # one transaction attaches all tables of a first copy
max_parallel_workers = {cores}
max_parallel_workers_per_gather = {gather}
max_parallel_maintenance_workers = {gather}

autovacuum = on                        # updates of current rows leave dead ones behind
autovacuum_vacuum_cost_delay = 1ms
jit = off                              # costs more than it saves on short queries

# Messages are read by programs and by people who search for them.
lc_messages = 'C'
logging_collector = off                # standard error goes to store.log
log_line_prefix = '%m [%p] %u@%d '
)",
      fmt::arg("socket", Quoted(socket_folder.string())),
      fmt::arg("buffers", std::clamp<int64_t>(memory_mb / 4, 128, 2048)),
      fmt::arg("cache", std::max<int64_t>(memory_mb * 6 / 10, 256)),
      fmt::arg("maintenance", std::clamp<int64_t>(memory_mb / 20, 64, 1024)),
      fmt::arg("work", std::clamp<int64_t>(memory_mb / 400, 4, 64)),
      fmt::arg("shared_memory", machine.shared_memory_bytes >= 256 * kMegabyte ? "posix" : "mmap"),
      fmt::arg("compression", wal_compression), fmt::arg("cores", std::max(2, machine.cores)),
      fmt::arg("gather", std::clamp(machine.cores, 1, 4)));
}

}  // namespace tidemark::temporal
