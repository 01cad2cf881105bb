#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/error_text.h"
#include "cli/stop_signals.h"

namespace tidemark::cli {

namespace {

constexpr const char* kVersion = "tidemark 0.1.0";

}  // namespace

int Run(int argc, char** argv) {
  CLI::App app("Tidemark keeps every version of live PostgreSQL data and answers FOR SYSTEM_TIME "
               "AS OF in plain SQL.",
               "tidemark");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.option_defaults()->take_last();
  Invocation invocation;
  Program program{.app = app, .invocation = invocation, .chosen = {}};
  for (const auto add : {AddUp, AddCheck, AddFollow, AddServe, AddStatus, AddBases, AddEvidence,
                         AddVerify, AddWait, AddUser}) {
    add(program);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << "tidemark: error: " << error.what() << "\n  hint:    Run tidemark --help.\n";
    return static_cast<int>(ExitCode::kUsage);
  }
  base::OpenLog();
  const StopSignals signals;
  invocation.stop = signals.token();
  try {
    return static_cast<int>(program.chosen(invocation));
  } catch (const base::Error& error) {
    PrintError(error);
    return static_cast<int>(ExitCodeOf(error));
  } catch (const std::exception& error) {
    PrintError(base::Error(base::kInternalError, error.what()));
    return static_cast<int>(ExitCode::kFailed);
  }
}

}  // namespace tidemark::cli
