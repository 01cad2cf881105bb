#include "cli/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

namespace tidemark::cli {

namespace {

/// nohup, and shells for their background jobs, have a signal ignored; that stays so.
bool IsIgnored(int signal) {
  struct sigaction now = {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

// SIGUSR2 ends the waiting thread; nobody else sends it.
StopSignals::StopSignals() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR2}) ::sigaddset(&signals_, signal);
  if (!IsIgnored(SIGINT)) ::sigaddset(&signals_, SIGINT);
  ignores_hangup_ = IsIgnored(SIGHUP);  // being blocked, it comes to the waiter all the same
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  waiter_ = std::thread([this] {
    for (int stops = 0;;) {
      int signal = 0;
      if (::sigwait(&signals_, &signal) != 0) continue;
      if (signal == SIGUSR2) return;
      if (signal == SIGHUP && (ActOnHangup() || ignores_hangup_)) continue;
      if (++stops > 1) ::_exit(128 + signal);
      source_.request_stop();
    }
  });
}

void StopSignals::OnHangup(std::function<void()> act) {
  const std::scoped_lock lock(mutex_);
  on_hangup_ = std::move(act);
}

bool StopSignals::ActOnHangup() {
  const std::scoped_lock lock(mutex_);
  if (!on_hangup_) return false;
  on_hangup_();
  return true;
}

StopSignals::~StopSignals() {
  ::pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

}  // namespace tidemark::cli
