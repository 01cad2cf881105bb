// An error that points into the client's text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tidemark::rewrite {

/// The error `state` with the position of byte `offset` of `sql`.
base::Error Complaint(base::SqlState state, std::string message, std::string_view sql,
                      size_t offset);

}  // namespace tidemark::rewrite
