#include "bench/gateway_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "bench/polling.h"
#include "bench/tcp_port.h"

namespace tidemark::bench {

namespace {

constexpr std::chrono::seconds kStartMax{30};

}  // namespace

std::vector<std::string> ListeningOnTcp(std::vector<std::string> settings) {
  settings.push_back(fmt::format("listen_addresses = '{}'", GatewayProcess::kHost));
  settings.push_back(fmt::format("port = {}", FreeTcpPort()));
  return settings;
}

GatewayProcess::GatewayProcess(const Options& options) : port_(FreeTcpPort()) {
  const int log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw std::runtime_error("could not open " + options.log.string());
  const char* path = std::getenv("PATH");
  process_ = base::ChildProcess::Start(
      {.command = {options.program.string(), "serve", "--superusers", "--store", options.store_dsn,
                   "--port", fmt::format("{}", port_), "--no-http"},
       .environment = {fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path)},
       .account = std::nullopt,
       .folder = "/",
       .output_fd = log,
       .kept_fds = {},
       .dies_with_parent = true});
  ::close(log);
  PollUntil("the gateway", kStartMax, [&] {
    if (process_->Wait(base::Deadline::After(std::chrono::milliseconds(0)))) {
      throw std::runtime_error("tidemark serve ended: see " + options.log.string());
    }
    return ListensOnTcp(port_);
  });
}

}  // namespace tidemark::bench
