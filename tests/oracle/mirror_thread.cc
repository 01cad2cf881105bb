#include "tests/oracle/mirror_thread.h"

#include "base/error.h"

namespace tidemark::oracle {

MirrorThread::MirrorThread(capture::MirrorOptions options)
    : thread_([this, options = std::move(options)](std::stop_token stop) {
        try {
          capture::MirrorJob(options).Run(stop);
        } catch (const base::Error& error) {
          const std::lock_guard lock(mutex_);
          failure_ = error.Full();
        }
      }) {}

void MirrorThread::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::string MirrorThread::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace tidemark::oracle
