// tidemark wait --lsn L: returns once nothing up to L is missing from the mirror.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "base/child_process.h"
#include "base/error.h"
#include "base/lsn.h"
#include "cli/command.h"
#include "temporal/status.h"

namespace tidemark::cli {

namespace {

using base::Error;
using std::chrono::milliseconds;

constexpr auto kPollEvery = milliseconds(20);

struct WaitOptions {
  std::string lsn, mirror, timeout = "60s";
};

/// "1500ms", "60s", "5m", "1h", or seconds without a unit.
milliseconds ReadSpan(const std::string& text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  const double factor = unit == "ms"                  ? 1
                        : unit.empty() || unit == "s" ? 1000
                        : unit == "m"                 ? 60'000
                        : unit == "h"                 ? 3'600'000
                                                      : 0;
  if (code != std::errc() || factor == 0 || number < 0 || number > 1e9) {
    throw Error(base::kConfigFileError, fmt::format("--timeout: \"{}\" is no time span", text))
        .Hint("Write it like 500ms, 60s, 5m or 1h.");
  }
  return milliseconds(static_cast<int64_t>(number * factor));
}

base::Lsn ReadLsn(const std::string& text) {
  try {
    return base::Lsn::Parse(text);
  } catch (const Error& error) {
    throw Error(base::kConfigFileError, "--lsn: " + error.message()).Hint(error.hint());
  }
}

ExitCode Wait(const Invocation& invocation, const WaitOptions& options) {
  const auto wanted = ReadLsn(options.lsn);
  const auto deadline = base::Deadline::After(ReadSpan(options.timeout));
  auto store = OpenStoreToRead(invocation.Configure(), invocation.stop);
  for (;;) {
    const auto received = temporal::LoadReceived(store, options.mirror);
    if (received && *received >= wanted) return ExitCode::kDone;
    if (deadline.passed() || invocation.stop.stop_requested()) {
      throw Error(base::kQueryCanceled,
                  received ? fmt::format("received only up to {}, not {}", received->ToString(),
                                         wanted.ToString())
                           : std::string("no mirror has been published yet"))
          .Hint("See \"tidemark status\" for the reason.");
    }
    base::WaitReadable({}, deadline.Min(base::Deadline::After(kPollEvery)), invocation.stop);
  }
}

}  // namespace

void AddWait(Program& program) {
  auto* command = program.app.add_subcommand(
      "wait", "return once the mirror has everything up to a position of its source");
  AddStoreOptions(*command, program.invocation);
  const auto options = std::make_shared<WaitOptions>();
  command->add_option("--lsn", options->lsn, "position in the source's log, like 0/16B3748")
      ->required()
      ->type_name("L");
  command->add_option("--mirror", options->mirror, "one mirror (all)")->type_name("NAME");
  command->add_option("--timeout", options->timeout, "how long at most (60s)")->type_name("SPAN");
  command->callback([&program, options] {
    program.chosen = [options](const Invocation& invocation) { return Wait(invocation, *options); };
  });
}

}  // namespace tidemark::cli
