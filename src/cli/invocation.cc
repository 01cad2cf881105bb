#include "cli/invocation.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "temporal/store.h"
#include "temporal/store_layout.h"

namespace tidemark::cli {

using base::Error;

namespace {
constexpr auto kConnectLimit = std::chrono::seconds(15);
}

void AddConfigOption(CLI::App& command, Invocation& invocation) {
  command.add_option("--config", invocation.config_file, "configuration file")
      ->envname("TIDEMARK_CONFIG")
      ->type_name("FILE");
}

void AddStoreOptions(CLI::App& command, Invocation& invocation) {
  AddConfigOption(command, invocation);
  command.add_option("--data", invocation.data, "folder of the embedded store")
      ->envname("TIDEMARK_DATA")
      ->type_name("DIR");
  command
      .add_option("--store", invocation.store,
                  "connection string of a store of yours, or \"embedded\"")
      ->envname("TIDEMARK_STORE")
      ->type_name("DSN");
}

void AddSourceOption(CLI::App& command, Invocation& invocation) {
  command.add_option("--source", invocation.source, "PostgreSQL to mirror, as a connection string")
      ->envname("TIDEMARK_SOURCE")
      ->type_name("DSN");
}

void AddPortOptions(CLI::App& command, Invocation& invocation) {
  command.add_option("--port", invocation.port, "port of the gateway (5480)")
      ->envname("TIDEMARK_PORT")
      ->type_name("P");
  command.add_option("--http-port", invocation.http_port, "port of the http server (8480)")
      ->envname("TIDEMARK_HTTP_PORT")
      ->type_name("P");
  command.add_flag("--no-http", invocation.no_http, "do not start the http server")
      ->envname("TIDEMARK_NO_HTTP");
}

void AddJsonOption(CLI::App& command, Invocation& invocation) {
  command.add_flag("--json", invocation.json, "print JSON");
}

Config Invocation::Configure() const {
  Config config;
  std::error_code none;
  if (!config_file.empty()) {
    config = LoadConfig(config_file);
  } else if (std::filesystem::exists(kDefaultConfigFile, none)) {
    config = LoadConfig(kDefaultConfigFile);
  }
  if (!data.empty()) config.data = data;
  if (!store.empty()) {
    config.store_dsn = store == "embedded" ? std::nullopt : std::optional(store);
  }
  if (port) config.gateway.port = *port;
  if (http_port) config.http.port = *http_port;
  if (no_http) config.http_serving.off = true;
  if (!source.empty()) {
    // What the command line names stands alone; the file's mirrors are not meant then.
    config.sources.clear();
    config.mirrors.clear();
    config.datasets.clear();
    try {
      AddMirrorOf(config, source);
    } catch (const Error& error) {
      throw Error(base::kConfigFileError, "--source: " + error.message()).Hint(error.hint());
    }
  }
  for (const char* name : {"TIDEMARK_ALLOW_VOLATILE_STORE", "TIDEMARK_INSECURE"}) {
    const auto value = ProcessEnvironment(name);
    if (!value) continue;
    if (*value != "true" && *value != "false") {
      throw Error(base::kConfigFileError, fmt::format("{} must be true or false", name));
    }
    const bool on = *value == "true";
    if (std::string_view(name) == "TIDEMARK_INSECURE") {
      config.gateway.insecure = config.http.insecure = on;
    } else {
      config.allow_volatile_store = on;
    }
  }
  return config;
}

std::string StoreDsn(const Config& config) {
  return config.store_dsn ? *config.store_dsn : temporal::StoreLayout(config.data).Dsn();
}

pg::Connection OpenStoreToRead(const Config& config, const std::stop_token& stop) {
  const auto dsn = StoreDsn(config);
  auto store = [&] {
    try {
      return temporal::OpenStore(dsn, base::Deadline::After(kConnectLimit), stop);
    } catch (Error& error) {
      error.AddContext("connecting to the store");
      throw;
    }
  }();
  if (!temporal::IsCurrent(store)) {
    throw Error(base::kNotInPrerequisiteState, "the store has no schema of this version")
        .Hint("\"tidemark up\" and \"tidemark follow\" bring a store to their own version.");
  }
  return store;
}

void RequireSafeListen(const Listen& listen, const std::string& name) {
  if (listen.IsLoopback() || listen.insecure || listen.RequiresTls()) return;
  throw Error(base::kConfigFileError,
              fmt::format("{}: listening on \"{}\" without {}TLS would send data in the clear",
                          name, listen.host, listen.HasTls() ? "requiring " : ""))
      .Hint(fmt::format("Give it \"tls: {{certificate_file: …, key_file: …}}\", listen on "
                        "127.0.0.1, or accept that with \"{}: {{insecure: true}}\".",
                        name));
}

}  // namespace tidemark::cli
