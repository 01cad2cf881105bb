#include "bench/pgbouncer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "bench/gateway_process.h"
#include "bench/polling.h"
#include "bench/tcp_port.h"
#include "temporal/server_account.h"

namespace tidemark::bench {

namespace {

constexpr std::chrono::seconds kStartMax{30};

}  // namespace

std::optional<std::filesystem::path> FindPgbouncer() {
  for (const char* path : {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return std::nullopt;
}

PgbouncerProcess::PgbouncerProcess(const Options& options) : port_(FreeTcpPort()) {
  const auto account = temporal::FindServerAccount();
  const auto configuration = options.folder / "pgbouncer.ini";
  const auto log_file = options.folder / "pgbouncer.log";
  std::ofstream(configuration) << fmt::format(
      "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n"
      "unix_socket_dir =\nauth_type = any\nauth_file =\npool_mode = session\nmax_client_conn = "
      "1000\ndefault_pool_size = 100\nlog_connections = 0\nlog_disconnections = 0\n"
      "ignore_startup_parameters = extra_float_digits\n",
      options.store_host, options.store_port, GatewayProcess::kHost, port_);
  // auth_type any signs all on as the user that the database names.
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw std::runtime_error("could not open " + log_file.string());
  auto process = temporal::AsServer(account, {options.program.string(), configuration.string()});
  process.output_fd = log;
  process.dies_with_parent = true;
  process_ = base::ChildProcess::Start(process);
  ::close(log);
  PollUntil("pgbouncer", kStartMax, [&] {
    if (process_->Wait(base::Deadline::After(std::chrono::milliseconds(0)))) {
      throw std::runtime_error("pgbouncer ended: see " + log_file.string());
    }
    return ListensOnTcp(port_);
  });
}

}  // namespace tidemark::bench
