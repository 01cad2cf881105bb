// A mirror that runs in a thread of the test.
#pragma once

#include <mutex>
#include <string>
#include <thread>

#include "capture/mirror_job.h"

namespace tidemark::oracle {

class MirrorThread {
 public:
  explicit MirrorThread(capture::MirrorOptions options);
  ~MirrorThread() { Stop(); }
  MirrorThread(const MirrorThread&) = delete;
  MirrorThread& operator=(const MirrorThread&) = delete;
  void Stop();
  /// What ended it by itself; empty while it runs.
  std::string failure() const;

 private:
  mutable std::mutex mutex_;
  std::string failure_;
  std::jthread thread_;
};

}  // namespace tidemark::oracle
