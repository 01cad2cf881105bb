#include "cli/servers.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/invocation.h"
#include "gateway/tls_identity.h"
#include "http/occurrences.h"
#include "pg/dsn.h"

namespace tidemark::cli {

namespace {

std::string ListenAddress(const Listen& listen) {
  return listen.host == "localhost" ? "127.0.0.1" : listen.host;
}

void RequireServable(const Listen& listen, const std::string& name) {
  RequireSafeListen(listen, name);
  if (listen.HasTls()) {
    gateway::TlsIdentity::Load({listen.tls_certificate_file, listen.tls_key_file});
  }
}

}  // namespace

void RequireServable(const Config& config) {
  RequireServable(config.gateway, "gateway");
  if (config.http_serving.off) return;
  RequireServable(config.http, "http");
  const auto& http = config.http;
  if (http.port != 0 && http.port == config.gateway.port && http.host == config.gateway.host) {
    throw base::Error(base::kConfigFileError,
                      fmt::format("gateway and http cannot both listen on {}:{}", http.host,
                                  http.port))
        .Hint("Choose another port with --http-port, or in \"http: {listen: …}\".");
  }
}

gateway::Options GatewayOptions(const Config& config, bool superusers) {
  const auto& listen = config.gateway;
  const auto& limits = config.gateway_limits;
  const auto store = pg::EndpointOf(StoreDsn(config));
  gateway::Options options;
  options.listen_host = ListenAddress(listen);
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

http::Options HttpOptions(const Config& config) {
  const auto& listen = config.http;
  const auto& serving = config.http_serving;
  http::Options options;
  options.listen_host = ListenAddress(listen);
  options.listen_port = listen.port;
  if (listen.HasTls()) {
    options.tls = {.certificate_file = listen.tls_certificate_file,
                   .key_file = listen.tls_key_file};
  }
  options.token = serving.token;
  options.store_dsn = StoreDsn(config);
  if (serving.connections) options.connections_max = *serving.connections;
  if (serving.subscribers) options.subscribers_max = *serving.subscribers;
  if (serving.body_bytes) options.body_bytes_max = *serving.body_bytes;
  options.add_pages = [rules = config.occurrences](http::Router& router) {
    http::AddOccurrences(router, rules, std::chrono::system_clock::now);
  };
  options.on_log = [](std::string_view line) { spdlog::info("http: {}", line); };
  return options;
}

}  // namespace tidemark::cli
