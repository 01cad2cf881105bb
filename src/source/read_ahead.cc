#include "source/read_ahead.h"

#include <functional>
#include <utility>

namespace tidemark::source {

namespace {

// One in the making and one in use besides; batches are bounded by bytes.
constexpr size_t kBatchesAhead = 2;

}  // namespace

ReadAhead::ReadAhead(std::unique_ptr<Reader> reader, const Limit& limit)
    : reader_(std::move(reader)),
      steps_(kBatchesAhead),
      passed_on_(limit.stop, [this] { stop_.request_stop(); }),
      thread_([this, own = Limit{limit.deadline, stop_.get_token()}] { Run(own); }) {}

ReadAhead::~ReadAhead() { stop_.request_stop(); }

void ReadAhead::Run(const Limit& limit) {
  try {
    for (;;) {
      Step step = reader_->Next(limit);
      const bool last = std::holds_alternative<End>(step);
      if (!steps_.Give(std::move(step), limit.stop)) limit.Check();
      if (last) break;
    }
    steps_.End();
  } catch (...) {
    steps_.End(std::current_exception());
  }
}

Step ReadAhead::Next(const Limit& limit) {
  if (end_) return *end_;
  Step step = *steps_.Take(limit.deadline, limit.stop);
  if (const auto* end = std::get_if<End>(&step)) end_ = *end;
  return step;
}

}  // namespace tidemark::source
