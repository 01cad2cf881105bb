// tidemark serve: the serving half. Knows the store only; never contacts a source. SIGHUP has it
// read certificate and key again.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/stop_signals.h"
#include "gateway/listener.h"
#include "pg/dsn.h"

namespace tidemark::cli {

namespace {

gateway::Options GatewayOptions(const Config& config, bool superusers) {
  const auto& listen = config.gateway;
  const auto& limits = config.gateway_limits;
  const auto store = pg::EndpointOf(StoreDsn(config));
  gateway::Options options;
  options.listen_host = listen.host == "localhost" ? "127.0.0.1" : listen.host;
  options.listen_port = listen.port;
  options.store = {.host = store.host, .port = store.port};
  if (listen.HasTls()) {
    options.tls = {.certificate_file = listen.tls_certificate_file,
                   .key_file = listen.tls_key_file};
  }
  options.requires_tls = listen.RequiresTls();
  options.superusers = superusers || config.gateway_superusers;
  if (limits.sessions) options.sessions_max = *limits.sessions;
  if (limits.startups) options.startups_max = *limits.startups;
  if (limits.startup_bytes) options.startup_bytes_max = *limits.startup_bytes;
  if (limits.startup_seconds) {
    options.startup_timeout = std::chrono::seconds(*limits.startup_seconds);
  }
  options.on_log = [](std::string_view line) { spdlog::info("gateway: {}", line); };
  return options;
}

/// Each session takes two descriptors; what the system grants by default is soon used up.
void RaiseOpenFilesLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void Reload(gateway::Listener& listener) {
  try {
    listener.ReloadTls();
    spdlog::info("gateway: certificate and key have been read again");
  } catch (const base::Error& error) {
    spdlog::error("gateway: the certificate and key of before stay in use: {}", error.what());
  }
}

ExitCode Serve(const Invocation& invocation, bool superusers) {
  const auto config = invocation.Configure();
  const auto& listen = config.gateway;
  RequireSafeListen(listen, "gateway");
  RaiseOpenFilesLimit();
  gateway::Listener listener(GatewayOptions(config, superusers));
  const HangupAction reload(*invocation.signals, [&listener, has_tls = listen.HasTls()] {
    if (has_tls) Reload(listener);
  });
  spdlog::info("gateway: listening on {}:{}{}", listen.host, listener.port(),
               listen.RequiresTls() ? ", TLS required"
               : listen.HasTls()    ? ", TLS offered"
                                    : "");
  listener.Run(invocation.stop);
  spdlog::info("gateway: stopped");
  return ExitCode::kDone;
}

}  // namespace

void AddServe(Program& program) {
  auto* command = program.app.add_subcommand(
      "serve", "serve the store to PostgreSQL clients; never contacts a source");
  AddStoreOptions(*command, program.invocation);
  AddPortOptions(*command, program.invocation);
  const auto superusers = std::make_shared<bool>(false);
  command->add_flag("--superusers", *superusers, "serve the store's superusers, too");
  command->callback([&program, superusers] {
    program.chosen = [superusers](const Invocation& invocation) {
      return Serve(invocation, *superusers);
    };
  });
}

}  // namespace tidemark::cli
