// A mirror as a member of a capture: its slot is drained to where the source stands, inside the
// transaction that publishes all members. The first time its tables are copied instead, and
// attached there. The slot is confirmed after the commit only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "capture/capture_member.h"
#include "capture/journal.h"
#include "capture/mirror_options.h"
#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/lease.h"

namespace tidemark::capture {

class MirrorDrain : public CaptureMember {
 public:
  /// Borrows the store's connection, on which it takes the mirror's lease, and the options.
  MirrorDrain(pg::Connection& store, const MirrorOptions& options);
  ~MirrorDrain() override;

  int Register() override;
  /// Throws 55006 when the mirror is followed live, and what preflight refuses.
  void Read(Progress& progress, const RowsRead& rows_read, std::stop_token stop) override;
  void Apply(temporal::CaptureContents& contents, std::stop_token stop) override;
  MemberTotals Settle(const temporal::CaptureContents& contents) override;
  void CleanUp(bool published) override;
  /// Before all datasets: its applier wants the session's temporary buffers first.
  int order() const override { return -1; }

 private:
  struct Copying;
  struct Draining;
  bool GoWithout(const temporal::Dataset* table, const base::Error& error, std::stop_token stop);
  void CopyFirst(Progress& progress, std::stop_token stop);

  pg::Connection* store_;
  MirrorOptions options_;
  std::optional<temporal::Lease> lease_;
  Journal journal_;
  std::unique_ptr<Copying> copying_;    // the first time
  std::unique_ptr<Draining> draining_;  // afterwards
};

}  // namespace tidemark::capture
