// The process's log on standard error: one line an event, `2026-11-28T12:00:00.000Z info message`.
// Level from TIDEMARK_LOG (trace … error, default info). Door to spdlog.
#pragma once

#include <spdlog/spdlog.h>

namespace tidemark::base {

/// Sets pattern, level and sink; called once by main.
void OpenLog();

}  // namespace tidemark::base
