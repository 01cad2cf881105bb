// Statements by which a session leaves read-only mode. A reader has no privilege to write anyway;
// it is told here, rather than at the write.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"

namespace tidemark::rewrite {

/// 25006 with a position when `sql` sets default_transaction_read_only or transaction_read_only to
/// off, or asks for READ WRITE; nullopt when it does not, or is not understood. Costs one scan for
/// a few words.
std::optional<base::Error> LeavesReadOnly(std::string_view sql);

}  // namespace tidemark::rewrite
