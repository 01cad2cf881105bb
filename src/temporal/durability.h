// Whether a store could lose a commit that it has confirmed. Tidemark lets a source throw its log
// away once the store has a change, so such a store is refused unless it is asked for by name.
// One thread (the connection's).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"

namespace tidemark::temporal {

struct Durability {
  bool fsync = true;
  bool full_page_writes = true;
  /// A folder of the store on a file system that is gone after a power cut.
  std::optional<std::string> volatile_folder;

  bool IsVolatile() const { return !fsync || !full_page_writes || volatile_folder; }
  /// Why it is volatile, each a sentence without its full stop; empty when it is not.
  std::vector<std::string> Reasons() const;
};

/// `folder` itself or its nearest existing ancestor lies on tmpfs or ramfs.
bool IsOnVolatileFileSystem(const std::filesystem::path& folder);

/// Asks the store; one round trip. `data_folder` is the store's data directory when it is on this
/// machine, where it and its pg_wal are looked at too.
Durability LoadDurability(pg::Connection& store,
                          const std::optional<std::filesystem::path>& data_folder = {});

/// Throws 55000 with all reasons when the store is volatile and that is not allowed.
void RequireDurable(const Durability& durability, bool allow_volatile_store);

}  // namespace tidemark::temporal
