#include "temporal/batch_copy.h"

#include <algorithm>
#include <utility>

#include "wire/bytes.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

namespace {

// An int8 field behind its length.
constexpr size_t kOrdinalBytes = sizeof(int32_t) + sizeof(int64_t);

}  // namespace

BatchCopy::BatchCopy(pg::Connection& store, const std::string& sql, Options options)
    : options_(options), copy_(store, sql) {
  std::string header;
  wire::CopyBinaryWriter(header).WriteHeader();
  copy_.Write(header);
}

// Leaves in passed_ what the filter sends.
void BatchCopy::Filter(std::string_view rows) {
  constexpr size_t kBefore = sizeof(int16_t) + kOrdinalBytes;
  passed_.clear();
  for (const char* at = rows.data(); at < rows.data() + rows.size();) {
    const char* const row = at;
    const auto fields = wire::LoadBigEndian<int16_t>(at);
    at += sizeof fields;
    for (int16_t i = 0; i < fields; ++i) {
      const auto length = wire::LoadBigEndian<int32_t>(at);
      at += sizeof length + static_cast<size_t>(std::max(length, 0));
    }
    options_.filter->Pass({row, at}, {row + kBefore, at}, passed_);
  }
}

void BatchCopy::Write(std::string rows) {
  bytes_ += static_cast<int64_t>(rows.size());
  if (options_.filter != nullptr) {
    Filter(rows);
    copy_.Write(passed_);
    return;
  }
  copy_.Write(rows);
  if (options_.digest != nullptr) options_.digest->Give(std::move(rows));
}

int64_t BatchCopy::Finish() {
  passed_.clear();
  while (options_.filter != nullptr && options_.filter->PassHeld(passed_)) {
    copy_.Write(passed_);
    passed_.clear();
  }
  std::string trailer;
  wire::CopyBinaryWriter(trailer).WriteTrailer();
  copy_.Write(trailer);
  return copy_.Finish();
}

}  // namespace tidemark::temporal
