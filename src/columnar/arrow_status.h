// Arrow's way to report a failure, turned into ours. Arrow's text becomes the detail.
#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <utility>

namespace tidemark::columnar {

/// Throws for a status that is not OK.
[[noreturn]] void ThrowStatus(const arrow::Status& status);

/// Throws 53200 when memory ran out, 54000 when an array is full, XX000 for what is our mistake.
inline void Check(const arrow::Status& status) {
  if (!status.ok()) [[unlikely]] {
    ThrowStatus(status);
  }
}

/// The value of `result`; throws as Check does.
template <typename T>
T Take(arrow::Result<T> result) {
  Check(result.status());
  return std::move(result).ValueUnsafe();
}

}  // namespace tidemark::columnar
