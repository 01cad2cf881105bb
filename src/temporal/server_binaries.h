// Where this machine keeps PostgreSQL's server binaries. Looks only; runs nothing but
// `pg_config --bindir`. Any thread.
#pragma once

#include <filesystem>
#include <optional>

namespace tidemark::temporal {

/// The oldest PostgreSQL that can be a store.
inline constexpr int kOldestStoreMajor = 15;

struct ServerBinaries {
  std::filesystem::path folder;  // holds postgres and initdb
  int major = 0;
};

/// The newest fit server of TIDEMARK_PG_BINDIR (alone, when set), `pg_config --bindir`,
/// /usr/lib/postgresql/*/bin and PATH; with `major`, one of exactly that version. Throws 55000
/// with a hint how to install one.
ServerBinaries FindServerBinaries(std::optional<int> major = std::nullopt);

}  // namespace tidemark::temporal
