// The rows of a reader, encoded for the store, by a thread that is a few pieces ahead: reading,
// decoding and encoding overlap with what the store makes of the rows. The reader and its relation
// belong to that thread until the object goes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/handover.h"
#include "source/reader.h"
#include "temporal/row_encoder.h"

namespace tidemark::capture {

class RowFeed {
 public:
  struct Piece {
    std::string rows;
    int64_t first_ordinal = 0;
  };

  /// Begins to read at once. `limit` bounds the whole read.
  RowFeed(std::unique_ptr<source::Reader> reader, temporal::RowEncoder::Options encoding,
          const source::Limit& limit);
  /// Stops the read, if it has not ended.
  ~RowFeed();

  /// The next rows, or nullopt after the last. Throws what the reader and the encoder throw.
  std::optional<Piece> Next(const source::Limit& limit);
  /// After the last.
  const source::End& end() const { return *end_; }

 private:
  void Run(const source::Limit& limit);

  std::unique_ptr<source::Reader> reader_;
  temporal::RowEncoder encoder_;
  base::Handover<Piece> pieces_;
  std::optional<source::End> end_;  // written before the last piece is known to be the last
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> passed_on_;  // the user's stop
  std::jthread thread_;
};

}  // namespace tidemark::capture
