#include "capture/row_feed.h"

#include <utility>

namespace tidemark::capture {

namespace {

// Of about a megabyte each.
constexpr size_t kPiecesAhead = 8;

}  // namespace

RowFeed::RowFeed(std::unique_ptr<source::Reader> reader, temporal::RowEncoder::Options encoding,
                 const source::Limit& limit)
    : reader_(std::move(reader)),
      encoder_(reader_->shape().schema, std::move(encoding)),
      pieces_(kPiecesAhead),
      passed_on_(limit.stop, [this] { stop_.request_stop(); }),
      thread_([this, own = source::Limit{limit.deadline, stop_.get_token()}] { Run(own); }) {}

RowFeed::~RowFeed() { stop_.request_stop(); }

void RowFeed::Run(const source::Limit& limit) {
  try {
    for (;;) {
      auto step = reader_->Next(limit);
      if (auto* end = std::get_if<source::End>(&step)) {
        end_ = std::move(*end);
        break;
      }
      const auto& batch = std::get<source::Batch>(step);
      if (!pieces_.Give({encoder_.Encode(*batch.rows), batch.first_ordinal}, limit.stop)) {
        limit.Check();
      }
    }
    pieces_.End();
  } catch (...) {
    pieces_.End(std::current_exception());
  }
}

std::optional<RowFeed::Piece> RowFeed::Next(const source::Limit& limit) {
  return pieces_.Take(limit.deadline, limit.stop);
}

}  // namespace tidemark::capture
