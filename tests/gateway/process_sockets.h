// The sockets that a process has open at this moment, as the kernel tells it. proc(5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::tests {

struct ProcessSocket {
  enum class Kind {
    kListens,    // TCP, at local_port
    kConnected,  // TCP, in any state but listening
    kLocal,      // a Unix socket, at `path` if it has one
    kKernel,     // netlink: a question to the kernel
    kOther,      // UDP and whatever else
  };
  Kind kind = Kind::kOther;
  uint16_t local_port = 0, remote_port = 0;
  std::string path;
};

/// Sockets that are closed while they are looked up are left out.
std::vector<ProcessSocket> SocketsOf(int pid);

}  // namespace tidemark::tests
