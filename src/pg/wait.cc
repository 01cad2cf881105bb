#include "pg/wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace tidemark::pg {

using base::Error;

Bell::Bell() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) {
    throw Error(base::kSystemError, std::string("could not create eventfd: ") + strerror(errno));
  }
}

Bell::~Bell() { ::close(fd_); }

void Bell::Ring() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}

Ready Bell::Wait(int socket, bool also_writable, base::Deadline deadline,
                 const std::stop_token& stop) {
  std::stop_callback ring(stop, [this] { Ring(); });
  for (;;) {
    if (stop.stop_requested()) throw Error(base::kQueryCanceled, "stopped on request");
    pollfd fds[2] = {{fd_, POLLIN, 0},
                     {socket, static_cast<short>(POLLIN | (also_writable ? POLLOUT : 0)), 0}};
    const int count = ::poll(fds, socket < 0 ? 1 : 2, static_cast<int>(deadline.left().count()));
    if (count < 0 && errno != EINTR) {
      throw Error(base::kSystemError, std::string("could not poll: ") + strerror(errno));
    }
    if (count > 0) {
      if (socket >= 0 && fds[1].revents != 0) return Ready::kSocket;
      uint64_t rings = 0;
      [[maybe_unused]] const auto read = ::read(fd_, &rings, sizeof rings);
      if (stop.stop_requested()) throw Error(base::kQueryCanceled, "stopped on request");
      return Ready::kWoken;
    }
    if (count == 0 && deadline.passed()) return Ready::kDeadline;
  }
}

}  // namespace tidemark::pg
