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
  for (const int signal : {SIGTERM, SIGUSR2}) ::sigaddset(&signals_, signal);
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!IsIgnored(signal)) ::sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  waiter_ = std::thread([this] {
    for (int stops = 0;;) {
      int signal = 0;
      if (::sigwait(&signals_, &signal) != 0) continue;
      if (signal == SIGUSR2) return;
      if (++stops > 1) ::_exit(128 + signal);
      source_.request_stop();
    }
  });
}

StopSignals::~StopSignals() {
  ::pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

}  // namespace tidemark::cli
