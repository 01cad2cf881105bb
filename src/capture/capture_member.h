// What a capture is made of: something that is read from a source by itself and published together
// with the others. A dataset that is read anew (dataset_capture.h) and a mirror whose slot is
// drained (mirror_drain.h) are such.
//
//   Register ──► Read ──► Apply, in the transaction of all ──► (committed) Settle ──► CleanUp
//      ▲          │ lost connection  ▲     │ rolled back
//      └──────────┘ CleanUp          └─────┘ again
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "capture/progress.h"
#include "temporal/capture_publish.h"

namespace tidemark::capture {

/// What changed, as far as reports say it.
struct MemberTotals {
  bool changed = false;
  int64_t puts = 0, deletions = 0, live_rows = 0;
  std::string version;  // in hex; empty for a mirror, whose tables have one each
};

class CaptureMember {
 public:
  using RowsRead = std::function<void(int64_t rows)>;

  virtual ~CaptureMember() = default;

  /// Finds or makes its journal, whose id it returns. Throws 42710 when its name or place is taken.
  virtual int Register() = 0;

  /// Contacts the source and reads it to its end, without a change that anybody could see.
  virtual void Read(Progress& progress, const RowsRead& rows_read, std::stop_token stop) = 0;

  /// Writes what was read, inside the caller's transaction, and adds what is to be published with
  /// it. May be called again after a rollback.
  virtual void Apply(temporal::CaptureContents& contents, std::stop_token stop) = 0;

  /// After the commit: what was published of it.
  virtual MemberTotals Settle(const temporal::CaptureContents& contents) = 0;

  /// After Settle, or instead of it: drops what Read has made.
  virtual void CleanUp(bool published) = 0;

  /// Members are applied in this order, so that two captures never wait for each other.
  virtual int order() const = 0;
};

}  // namespace tidemark::capture
