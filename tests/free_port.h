// A port of 127.0.0.1 for a server of a test.
#pragma once

#include <cstdint>

namespace tidemark::tests {

/// A listening socket on a free port of 127.0.0.1.
class TakenPort {
 public:
  TakenPort();
  ~TakenPort();
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
};

/// One that was free a moment ago.
uint16_t FreePort();

}  // namespace tidemark::tests
