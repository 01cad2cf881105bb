// A reader that is pulled ahead of its user by a thread of its own, a few batches far: decoding then
// overlaps with what becomes of the rows. The relation that it came from belongs to that thread, too,
// until the object goes.
#pragma once

#include <memory>
#include <thread>

#include "base/handover.h"
#include "source/reader.h"

namespace tidemark::source {

class ReadAhead final : public Reader {
 public:
  /// Begins to read at once. `limit` bounds the whole read.
  ReadAhead(std::unique_ptr<Reader> reader, const Limit& limit);
  /// Stops the read, if it has not ended.
  ~ReadAhead() override;

  const RelationShape& shape() const override { return reader_->shape(); }
  Step Next(const Limit& limit) override;

 private:
  void Run(const Limit& limit);

  std::unique_ptr<Reader> reader_;
  base::Handover<Step> steps_;
  std::optional<End> end_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> passed_on_;  // the user's stop
  std::jthread thread_;
};

}  // namespace tidemark::source
