// Whether an address can be listened on, asked before anything is created, and whether somebody
// does. Opens sockets for a moment only.
#pragma once

#include "cli/config.h"

namespace tidemark::cli {

/// `name` is "gateway" or "http". Throws 55006 when the address is taken, 08001 when it cannot be
/// listened on at all. Another process may still take it afterwards; whoever listens says so then.
void RequireFreePort(const Listen& listen, const std::string& name);

/// The same for both servers, as far as they are wanted.
void RequireFreePorts(const Config& config);

/// Somebody accepts connections there.
bool IsAnswered(const Listen& listen);

/// Where a client on this machine reaches it.
std::string ReachableHost(const Listen& listen);

/// The http server's address as a URL, without a path.
std::string HttpUrl(const Listen& http);

}  // namespace tidemark::cli
