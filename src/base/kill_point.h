// Kill points: named instants at which the crash tests end the process as SIGKILL would.
// TIDEMARK_KILL_POINT="publish.before_commit" kills at the first arrival, ":3" at the third.
// Without the variable a kill point costs one load and one comparison.
#pragma once

#include <string_view>

namespace tidemark::base {

/// Ends the process with SIGKILL if the environment asks for `name`.
void KillPoint(std::string_view name);

}  // namespace tidemark::base
