// What the capture says of itself while it runs: a row of tidemark.progress, written about once a
// second by a thread of its own, so that a long copy or a long apply does not look dead. For
// people and for `status`; nothing is decided from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/lsn.h"
#include "base/sqlstate.h"

namespace tidemark::capture {

enum class CaptureState { kStarting, kWaiting, kCopying, kStreaming, kFailed, kStopped };

/// One thing that a person should know or mend.
struct Complaint {
  std::string sqlstate;
  std::string message, detail, hint;
  std::string table;  // empty when it concerns all
  bool note = false;  // worth knowing, nothing is wrong
};

class Progress {
 public:
  Progress(std::string store_dsn, int journal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void SetState(CaptureState state);
  /// What is standing: notes of the preflight, tables left out.
  void SetStanding(std::vector<Complaint> complaints);
  /// Tables that are not followed just now, and why.
  void SetTables(std::vector<Complaint> complaints);
  /// What stops the capture now, and is counted; nullopt when it goes on.
  void SetFailure(std::optional<Complaint> failure);
  /// The danger that the slot is in; nullopt: none. False when that has been said before.
  bool SetSlot(std::optional<Complaint> danger);
  void SetSource(base::Lsn source_lsn) { source_lsn_ = source_lsn.value(); }
  /// Of the source's log: held back by the slot, what may be written before it is lost, and what is
  /// free on its disk. -1: not known.
  void SetRetained(int64_t bytes, int64_t safe_bytes, int64_t free_bytes) {
    retained_bytes_ = bytes;
    safe_bytes_ = safe_bytes;
    free_bytes_ = free_bytes;
  }
  void ExpectRows(int64_t rows) { rows_expected_ = rows; }
  void AddCopied(int64_t rows, int64_t bytes) {
    copied_rows_ += rows;
    copied_bytes_ += bytes;
  }
  void RestartCopy() { copied_rows_ = copied_bytes_ = 0; }
  /// Writes the row now rather than within a second.
  void Flush();

 private:
  void Run(const std::stop_token& stop);
  std::string ComplaintsJson() const;

  std::string store_dsn_;
  int journal_;
  mutable std::mutex mutex_;
  CaptureState state_ = CaptureState::kStarting;
  std::vector<Complaint> standing_, tables_;
  std::optional<Complaint> failure_, slot_;
  int64_t failures_ = 0;  // that are not in the store yet
  std::atomic<uint64_t> source_lsn_{0};
  std::atomic<int64_t> retained_bytes_{-1}, safe_bytes_{-1}, free_bytes_{-1};
  std::atomic<int64_t> rows_expected_{-1}, copied_rows_{0}, copied_bytes_{0};
  std::atomic<bool> flush_wanted_{false};
  std::jthread writer_;
};

}  // namespace tidemark::capture
