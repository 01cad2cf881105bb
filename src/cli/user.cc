// tidemark user add NAME: a login role that may read everything in the plane and write nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/psql_line.h"
#include "temporal/store_database.h"
#include "temporal/store_layout.h"

namespace tidemark::cli {

namespace {

struct UserOptions {
  std::string name, passfile;
};

ExitCode UserAdd(const Invocation& invocation, const UserOptions& options) {
  const auto config = invocation.Configure();
  auto store = OpenStoreToRead(config, invocation.stop);
  const std::filesystem::path passfile =
      !options.passfile.empty() ? std::filesystem::absolute(options.passfile)
      : config.store_dsn        ? std::filesystem::absolute(options.name + ".pgpass")
                         : temporal::StoreLayout(config.data).folder / (options.name + ".pgpass");
  temporal::EnsureReader(store, {.name = options.name,
                                 .passfile = passfile,
                                 .hosts = PassfileHosts(config.gateway),
                                 .port = config.gateway.port});
  fmt::print("{}\n", PsqlLine(config.gateway, passfile, options.name,
                              store.Value("SELECT pg_catalog.current_database()")));
  return ExitCode::kDone;
}

}  // namespace

void AddUser(Program& program) {
  auto* group = program.app.add_subcommand("user", "reader roles of the store");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("add", "add a login role that may read everything");
  AddStoreOptions(*command, program.invocation);
  AddPortOptions(*command, program.invocation);
  const auto options = std::make_shared<UserOptions>();
  command->add_option("name", options->name, "name of the role")->required()->type_name("NAME");
  command
      ->add_option("--passfile", options->passfile,
                   "libpq passfile that receives the password (DIR/NAME.pgpass)")
      ->type_name("FILE");
  command->callback([&program, options] {
    program.chosen = [options](const Invocation& invocation) {
      return UserAdd(invocation, *options);
    };
  });
}

}  // namespace tidemark::cli
