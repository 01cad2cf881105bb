// Whether an address can be listened on, asked before anything is created, and whether somebody
// does. Opens sockets for a moment only.
#pragma once

#include "cli/config.h"

namespace tidemark::cli {

/// Throws 55006 when the address is taken, 08001 when it cannot be listened on at all. Another
/// process may still take it afterwards; whoever listens says so then.
void RequireFreePort(const Listen& listen, const std::string& name);

/// Somebody accepts connections there.
bool IsAnswered(const Listen& listen);

}  // namespace tidemark::cli
