#include "cli/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

namespace tidemark::cli {

// SIGUSR2 ends the waiting thread; nobody else sends it.
StopSignals::StopSignals() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR2}) ::sigaddset(&signals_, signal);
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
