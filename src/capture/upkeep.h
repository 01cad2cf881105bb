// What goes on beside the stream without touching it: sealing full history partitions, and looking
// at how much write-ahead log the slot holds back at the source. A thread with connections of its
// own; its failures are logged and it goes on.
#pragma once

#include <stop_token>
#include <string>
#include <thread>

#include "capture/progress.h"

namespace tidemark::capture {

class Upkeep {
 public:
  Upkeep(std::string source_dsn, std::string store_dsn, std::string slot, Progress& progress);
  ~Upkeep() = default;  // stops and joins

 private:
  std::jthread thread_;
};

}  // namespace tidemark::capture
