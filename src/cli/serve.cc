// tidemark serve: the serving half, gateway and http server. Knows the store only; never contacts a
// source. SIGHUP has it read certificates and keys again.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/servers.h"
#include "cli/stop_signals.h"
#include "gateway/listener.h"
#include "http/server.h"

namespace tidemark::cli {

namespace {

using base::Error;

/// Each session takes two descriptors; what the system grants by default is soon used up.
void RaiseOpenFilesLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

template <typename Server>
void Reload(Server& server, const char* name) {
  try {
    server.ReloadTls();
    spdlog::info("{}: certificate and key have been read again", name);
  } catch (const Error& error) {
    spdlog::error("{}: the certificate and key of before stay in use: {}", name, error.what());
  }
}

std::unique_ptr<http::Server> MakeHttpServer(const Config& config) {
  if (config.http_serving.off) return nullptr;
  try {
    return std::make_unique<http::Server>(HttpOptions(config));
  } catch (Error& error) {
    if (error.state() != base::kObjectInUse) throw;
    throw std::move(error).Hint(
        "Choose a port with --http-port or in \"http: {listen: …}\", or do without: --no-http.");
  }
}

void LogListening(const Config& config, uint16_t gateway_port, const http::Server* http) {
  const auto& listen = config.gateway;
  spdlog::info("gateway: listening on {}:{}{}", listen.host, gateway_port,
               listen.RequiresTls() ? ", TLS required"
               : listen.HasTls()    ? ", TLS offered"
                                    : "");
  if (http == nullptr) return;
  spdlog::info("http: listening on {}:{}{}{}", config.http.host, http->port(),
               config.http.HasTls() ? ", TLS" : "",
               config.http_serving.token.empty() ? "" : ", a token is needed");
  if (config.http_serving.token.empty() && !config.http.IsLoopback()) {
    spdlog::warn("http: whoever reaches it may ask; set \"http: {{token: …}}\"");
  }
}

/// Runs the http server beside the gateway. When it fails, it stops the gateway, too.
class HttpThread {
 public:
  HttpThread(http::Server& server, std::stop_source& all)
      : thread_([this, &server, &all] {
          try {
            server.Run(all.get_token());
          } catch (const std::exception& error) {
            failure_ = error.what();
            all.request_stop();
          }
        }) {}
  /// Returns when it has ended; throws what it failed of.
  void Join() {
    thread_.join();
    if (failure_) throw Error(base::kInternalError, "http: " + *failure_);
  }

 private:
  std::optional<std::string> failure_;
  std::jthread thread_;
};

ExitCode Serve(const Invocation& invocation, bool superusers) {
  const auto config = invocation.Configure();
  RequireServable(config);
  RaiseOpenFilesLimit();
  gateway::Listener listener(GatewayOptions(config, superusers));
  const auto http = MakeHttpServer(config);
  const HangupAction reload(*invocation.signals, [&] {
    if (config.gateway.HasTls()) Reload(listener, "gateway");
    if (http && config.http.HasTls()) Reload(*http, "http");
  });
  LogListening(config, listener.port(), http.get());
  std::stop_source all;
  const std::stop_callback on_stop(invocation.stop, [&] { all.request_stop(); });
  std::optional<HttpThread> http_thread;
  if (http) http_thread.emplace(*http, all);
  listener.Run(all.get_token());
  spdlog::info("gateway: stopped");
  all.request_stop();
  if (http_thread) http_thread->Join();
  return ExitCode::kDone;
}

}  // namespace

void AddServe(Program& program) {
  auto* command = program.app.add_subcommand(
      "serve", "serve the store over the PostgreSQL protocol and http; never contacts a source");
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
