#include "columnar/arrow_status.h"

#include "base/error.h"

namespace tidemark::columnar {

namespace {

constexpr base::SqlState kOutOfMemory{"53200"};
constexpr base::SqlState kProgramLimitExceeded{"54000"};

}  // namespace

void ThrowStatus(const arrow::Status& status) {
  if (status.IsOutOfMemory()) {
    throw base::Error(kOutOfMemory, "could not allocate memory for a batch")
        .Detail(status.message());
  }
  if (status.IsCapacityError()) {
    throw base::Error(kProgramLimitExceeded, "a batch cannot hold the value")
        .Detail(status.message());
  }
  throw base::Error(base::kInternalError, "an array of a batch cannot be built")
      .Detail(status.ToString());
}

}  // namespace tidemark::columnar
