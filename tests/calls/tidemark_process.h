// The program as a process that may be told where to die.
#pragma once

#include <string>
#include <vector>

#include "base/child_process.h"

extern char** environ;

namespace tidemark::tests {

/// `tidemark` with these arguments, killed at `kill_point` if one is named.
inline base::ChildProcess StartTidemark(const std::vector<std::string>& arguments,
                                        const std::string& kill_point = "") {
  base::ChildProcess::Options options{.command = {TIDEMARK_BINARY}, .dies_with_parent = true};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  if (!kill_point.empty()) options.environment.push_back("TIDEMARK_KILL_POINT=" + kill_point);
  return base::ChildProcess::Start(options);
}

}  // namespace tidemark::tests
