// SIGTERM, SIGINT and SIGHUP as a stop token; a second one ends the process at once. SIGHUP may be
// given another meaning. Made once, by main, before any other thread.
#pragma once

#include <csignal>
#include <functional>
#include <mutex>
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
  friend class HangupAction;
  void OnHangup(std::function<void()> act);
  bool ActOnHangup();

  std::stop_source source_;
  sigset_t signals_;
  bool ignores_hangup_ = false;
  std::mutex mutex_;  // guards on_hangup_, and is held while it runs
  std::function<void()> on_hangup_;
  std::thread waiter_;
};

/// While it lives, SIGHUP does this and does not stop, even where it was ignored. `act` runs on a
/// thread of its own, one call at a time, and must not throw.
class HangupAction {
 public:
  HangupAction(StopSignals& signals, std::function<void()> act) : signals_(signals) {
    signals_.OnHangup(std::move(act));
  }
  ~HangupAction() { signals_.OnHangup(nullptr); }
  HangupAction(const HangupAction&) = delete;
  HangupAction& operator=(const HangupAction&) = delete;

 private:
  StopSignals& signals_;
};

}  // namespace tidemark::cli
