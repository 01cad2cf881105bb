#include "temporal/server_binaries.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;
using base::Deadline;

namespace {

std::vector<fs::path> SearchPath() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const auto part = rest.substr(0, colon);
    if (part.starts_with('/')) folders.emplace_back(part);
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return folders;
}

std::string OutputOf(const fs::path& program, const std::string& argument) {
  std::string output;
  const char* path = std::getenv("PATH");
  base::ChildProcess::Options options{
      .command = {program.string(), argument},
      .environment = {fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path), "LC_ALL=C"}};
  try {
    if (!base::RunToEnd(options, &output, Deadline::After(std::chrono::seconds(10))).ok()) return "";
  } catch (const base::Error&) {
    return "";  // a program that cannot be run is no server
  }
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

/// The major version of `folder`/postgres; 0 when it is no complete server.
int MajorOf(const fs::path& folder) {
  const auto server = folder / "postgres";
  if (::access(server.c_str(), X_OK) != 0 || ::access((folder / "initdb").c_str(), X_OK) != 0) {
    return 0;
  }
  const auto text = OutputOf(server, "--version");  // postgres (PostgreSQL) 15.18 (Debian …)
  const auto after = text.find(") ");
  if (after == std::string::npos) return 0;
  int major = 0;
  std::from_chars(text.data() + after + 2, text.data() + text.size(), major);
  return major;
}

std::vector<fs::path> Candidates() {
  if (const char* chosen = std::getenv("TIDEMARK_PG_BINDIR")) return {chosen};
  std::vector<fs::path> folders;
  const auto path = SearchPath();
  for (const auto& folder : path) {
    const auto program = folder / "pg_config";
    if (::access(program.c_str(), X_OK) != 0) continue;
    if (const auto answer = OutputOf(program, "--bindir"); answer.starts_with('/')) {
      folders.emplace_back(answer);
    }
    break;
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    folders.push_back(entry.path() / "bin");
  }
  folders.insert(folders.end(), path.begin(), path.end());
  return folders;
}

}  // namespace

ServerBinaries FindServerBinaries(std::optional<int> major) {
  ServerBinaries best;
  int newest_unfit = 0;
  for (const auto& folder : Candidates()) {
    const int found = MajorOf(folder);
    const bool fit = major ? found == *major : found >= kOldestStoreMajor;
    if (!fit) {
      newest_unfit = std::max(newest_unfit, found);
    } else if (found > best.major) {
      best = {folder, found};
    }
  }
  if (best.major != 0) return best;
  const std::string wanted = major ? std::to_string(*major)
                                   : std::to_string(kOldestStoreMajor) + " or newer";
  base::Error error(base::kNotInPrerequisiteState,
                    fmt::format("no PostgreSQL {} server was found on this machine", wanted));
  if (newest_unfit != 0) {
    std::move(error).Detail(
        fmt::format("The newest other version found is {}.", newest_unfit));
  }
  throw std::move(error).Hint(fmt::format(
      "Install it (Debian, Ubuntu: apt-get install postgresql{}), set TIDEMARK_PG_BINDIR to the "
      "folder of its binaries, or name a server of yours with \"store: postgres://…\".",
      major ? fmt::format("-{}", *major) : ""));
}

}  // namespace tidemark::temporal
