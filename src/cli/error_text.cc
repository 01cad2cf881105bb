#include "cli/error_text.h"

#include <fmt/format.h>

#include <string_view>

namespace tidemark::cli {

namespace {

void PrintLines(std::FILE* out, std::string_view heading, std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    fmt::print(out, "  {:<9}{}\n", heading, text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    heading = "";
  }
}

}  // namespace

void PrintError(const base::Error& error, std::FILE* out) {
  fmt::print(out, "tidemark: error: {} ({})\n", error.message(), error.state().view());
  PrintLines(out, "detail:", error.detail());
  PrintLines(out, "hint:", error.hint());
  for (const auto& line : error.context()) PrintLines(out, "context:", line);
}

ExitCode ExitCodeOf(const base::Error& error) {
  return error.state() == base::kConfigFileError ? ExitCode::kUsage : ExitCode::kFailed;
}

}  // namespace tidemark::cli
