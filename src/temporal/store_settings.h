// The settings of the embedded store, sized for the machine, as the text of a configuration file.
// Pure but for MeasureMachine(). Manual: "Server Configuration".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tidemark::temporal {

struct Machine {
  int64_t memory_bytes = 0;         // RAM, or the container's limit when that is lower
  int64_t shared_memory_bytes = 0;  // size of /dev/shm
  int cores = 1;
};

/// What this machine, or the container we run in, has.
Machine MeasureMachine();

/// The file tidemark.conf that the store's postgresql.conf includes, with a reason beside each
/// setting. `wal_compression` is a value that the server binaries accept.
std::string StoreSettings(const Machine& machine, const std::filesystem::path& socket_folder,
                          const std::string& wal_compression);

}  // namespace tidemark::temporal
