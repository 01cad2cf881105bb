// tidemark serve: the serving half. Knows the store only; never contacts a source.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "gateway/listener.h"
#include "pg/dsn.h"

namespace tidemark::cli {

namespace {

ExitCode Serve(const Invocation& invocation) {
  const auto config = invocation.Configure();
  const auto& listen = config.gateway;
  RequireSafeListen(listen, "gateway");
  if (!listen.tls_certificate_file.empty()) RefuseUnavailable(config);
  const auto store = pg::EndpointOf(StoreDsn(config));
  gateway::Listener listener({
      .listen_host = listen.host == "localhost" ? "127.0.0.1" : listen.host,
      .listen_port = listen.port,
      .store = {.host = store.host, .port = store.port},
      .on_log = [](std::string_view line) { spdlog::info("gateway: {}", line); },
  });
  spdlog::info("gateway: listening on {}:{}", listen.host, listener.port());
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
  command->callback([&program] { program.chosen = Serve; });
}

}  // namespace tidemark::cli
