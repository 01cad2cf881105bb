// What stands in the way of a capture, as `tidemark check` shows it: data for the person who must
// act. Found before anything is created or read.
#pragma once

#include <string>

#include "base/sqlstate.h"

namespace tidemark::source {

enum class Severity {
  kRefusesAll,    // nothing can be captured
  kRefusesTable,  // `table` is left out, the rest is captured
  kNote,          // captured, but worth knowing
};

struct Problem {
  Severity severity = Severity::kNote;
  std::string table;  // as people read it; empty when the whole source is concerned
  std::string what;
  std::string fix;  // may be empty for a note
  base::SqlState state;
  bool watched = false;  // it may come and go: a mirror says it anew whenever it looks
};

}  // namespace tidemark::source
