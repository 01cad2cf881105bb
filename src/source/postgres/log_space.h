// How much room is left on the disk where a server keeps its write-ahead log. PostgreSQL has no
// function for it, so the disk itself is asked, where the server runs on this machine and its
// folder may be looked into. Manual: "postmaster.pid" (Database File Layout).
#pragma once

#include <cstdint>
#include <optional>

#include "pg/connection.h"

namespace tidemark::source {

/// Bytes that the server may still write there. nullopt: the role may not see data_directory
/// (pg_read_all_settings), this process may not look into it, or the server whose folder lies there
/// is another one, by port and start. One round trip.
std::optional<int64_t> FreeLogBytes(pg::Connection& server);

}  // namespace tidemark::source
