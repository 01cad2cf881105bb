// What goes on beside the stream without touching it: sealing full history partitions, and looking
// at how much write-ahead log the slot holds back at the source (slot_watch.h). A thread with
// connections of its own; its failures are logged and it goes on.
#pragma once

#include <stop_token>
#include <string>
#include <thread>

#include "capture/mirror_options.h"
#include "capture/progress.h"

namespace tidemark::capture {

class Upkeep {
 public:
  Upkeep(MirrorOptions options, std::string slot, Progress& progress);
  ~Upkeep() = default;  // stops and joins

 private:
  std::jthread thread_;
};

}  // namespace tidemark::capture
