// The capturing process of the crash tests: one mirror, until SIGTERM or death.
//   follower NAME SOURCE_DSN STORE_DSN [BATCH_CHANGES]
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "base/error.h"
#include "capture/mirror_job.h"

int main(int argc, char** argv) {
  using namespace tidemark;
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: follower NAME SOURCE_DSN STORE_DSN [BATCH_CHANGES]\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  int code = 0;
  std::jthread job([&](std::stop_token stop) {
    try {
      // Small history partitions: they are closed and sealed all the time.
      capture::MirrorOptions options{.name = argv[1],
                                     .source_dsn = argv[2],
                                     .store_dsn = argv[3],
                                     .history = {.rows_aimed = 2000}};
      if (argc == 5) options.batch_changes = std::stoul(argv[4]);
      capture::MirrorJob(options).Run(stop);
    } catch (const base::Error& error) {
      std::fprintf(stderr, "%s\n", error.Full().c_str());
      code = 1;
    }
    ::kill(::getpid(), SIGTERM);
  });
  int signal = 0;
  ::sigwait(&ending, &signal);
  job.request_stop();
  job.join();
  return code;
}
