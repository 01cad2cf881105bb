// A mirror's own rows in the control tables: its source and its journal, registered once, and the
// captures that ran in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/mirror_options.h"
#include "pg/connection.h"
#include "source/postgres/log_place.h"
#include "source/postgres/preflight.h"

namespace tidemark::capture {

struct Journal {
  int id = 0;
  std::string name;
  std::string publication, slot;
  // What the source was when it was last followed; empty before its first copy.
  std::string system_identifier;
  std::string database;
  uint32_t timeline = 0;
  std::string timeline_history;
};

/// Finds or makes the rows of the mirror. Throws 42710 when its name, or the place of its only
/// relation, is another's.
Journal EnsureJournal(pg::Connection& store, const MirrorOptions& options);

/// Keeps what the source is and which log it writes, to be compared at each later start.
void StoreSourceIdentity(pg::Connection& store, const Journal& journal,
                         const source::ServerFacts& facts, const source::LogPlace& log);

/// Opens a capture row: state running. Returns its id.
int64_t BeginCapture(pg::Connection& store, int journal, const std::string& kind,
                     const std::string& slot);
/// state: published or abandoned.
void EndCapture(pg::Connection& store, int64_t capture, const std::string& state,
                const std::string& reason);

/// A copy that was cut short by a crash: there is one while its row says running.
struct UnfinishedCopy {
  int64_t capture;
  std::string slot;
};
std::optional<UnfinishedCopy> FindUnfinishedCopy(pg::Connection& store, int journal);

}  // namespace tidemark::capture
