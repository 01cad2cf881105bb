#include "bench/durable_cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "base/lsn.h"

namespace tidemark::bench {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> Settings(const std::vector<std::string>& more) {
  std::vector<std::string> settings = {"shared_buffers = 512MB",
                                       "max_wal_size = 8GB",
                                       "min_wal_size = 1GB",
                                       "checkpoint_timeout = 30min",
                                       // Or a subscription's worker may begin five seconds late.
                                       "wal_retrieve_retry_interval = 100ms",
                                       "wal_buffers = 16MB",
                                       "max_worker_processes = 16",
                                       "work_mem = 32MB",
                                       "timezone = 'UTC'",
                                       "jit = off",
                                       "maintenance_work_mem = 256MB",
                                       "log_min_messages = warning"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// What /proc/PID/stat says, in clock ticks. proc(5).
struct ProcessStat {
  int parent = 0;
  int64_t own = 0, reaped = 0;
};

std::optional<ProcessStat> StatOf(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  // The name in parentheses may hold anything.
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  std::string state, skipped;
  ProcessStat stat;
  rest >> state >> stat.parent;
  for (int i = 5; i <= 13; ++i) rest >> skipped;
  int64_t user = 0, system = 0, reaped_user = 0, reaped_system = 0;
  rest >> user >> system >> reaped_user >> reaped_system;
  stat.own = user + system;
  stat.reaped = reaped_user + reaped_system;
  return stat;
}

double Seconds(int64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double ProcessorSecondsOf(int pid) {
  const auto stat = StatOf(fs::path("/proc") / std::to_string(pid));
  return stat ? Seconds(stat->own) : 0;
}

int64_t PeakResidentBytesOf(int pid) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string word; in >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

DurableCluster::DurableCluster(BoundedRun& bounded, std::vector<std::string> settings)
    : HeldRun{bounded, bounded.Delay()}, tests::Cluster(Settings(settings), /*durable=*/true) {
  run.Keep(hold, *this);
  hold.unlock();
}

DurableCluster::~DurableCluster() {
  hold.lock();
  run.Forget(hold, *this);
}

double DurableCluster::ProcessorSeconds() const {
  int postmaster = 0;
  std::ifstream(directory() / "data" / "postmaster.pid") >> postmaster;
  int64_t ticks = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = StatOf(entry.path());
    if (!stat) continue;
    if (name == std::to_string(postmaster)) ticks += stat->own + stat->reaped;
    if (stat->parent == postmaster) ticks += stat->own;
  }
  return Seconds(ticks);
}

int64_t DurableCluster::LogBytes() const {
  return static_cast<int64_t>(
      base::Lsn::Parse(Connect().Value("SELECT pg_current_wal_insert_lsn()")).value());
}

void DurableCluster::Settle() const { Connect().Execute("CHECKPOINT"); }

}  // namespace tidemark::bench
