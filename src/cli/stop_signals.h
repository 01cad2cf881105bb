// SIGTERM, SIGINT and SIGHUP as a stop token. Made once, by main, before any other thread; a second signal
// ends the process at once.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace tidemark::cli {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  sigset_t signals_;
  std::thread waiter_;
};

}  // namespace tidemark::cli
