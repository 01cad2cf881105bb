#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/error_text.h"
#include "cli/stop_signals.h"
#include "cli/yaml_reader.h"
#include "source/files/file_set.h"

namespace tidemark::cli {

namespace {

constexpr const char* kVersion = "tidemark 0.1.0";

/// What is wrong with the command line. CLI11 does not name a command that does not exist.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word.starts_with('-')) return error.what();
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::count(names.begin(), names.end(), word) > 0) return error.what();
  const auto meant = Nearest(word, names);
  return fmt::format("unknown command \"{}\"{}", word,
                     meant.empty() ? "" : fmt::format(", did you mean \"{}\"?", meant));
}

/// At the end of a command: the last of what its sources have used.
struct FilesFinished {
  ~FilesFinished() {
    try {
      source::FinishRemoteFiles();
    } catch (const base::Error& error) {
      spdlog::warn("{}", error.what());
    }
  }
};

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
  for (const auto add : {AddUp, AddCheck, AddCapture, AddFollow, AddServe, AddStatus, AddBases, AddEvidence,
                         AddVerify, AddPrune, AddResync, AddWait, AddUser}) {
    add(program);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "tidemark: error: {}\n  hint:    Run tidemark --help.\n",
               UsageText(app, error, argc, argv));
    return static_cast<int>(ExitCode::kUsage);
  }
  base::OpenLog();
  StopSignals signals;
  invocation.stop = signals.token();
  invocation.signals = &signals;
  const FilesFinished finished;
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
