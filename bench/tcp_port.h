// Ports of this machine's loopback, for servers that are measured.
#pragma once

#include <cstdint>

namespace tidemark::bench {

/// A port that is free now.
uint16_t FreeTcpPort();

/// Whether somebody accepts connections there.
bool ListensOnTcp(uint16_t port);

}  // namespace tidemark::bench
