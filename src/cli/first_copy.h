// What `up` shows until its mirrors are readable: progress of the first copy, then the line by
// which readers connect. Reads the store's control tables only. One thread.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/connection.h"

namespace tidemark::cli {

class FirstCopy {
 public:
  /// `dsn` is the store's. `mirrors` is how many there will be.
  FirstCopy(std::string dsn, size_t mirrors) : dsn_(std::move(dsn)), mirrors_(mirrors) {}

  /// Looks once, prints what has changed; true when all mirrors are readable. A store that cannot
  /// be asked just now is asked again next time.
  bool Look(const std::stop_token& stop);
  /// How much is readable: "12 tables, 3,400 rows".
  const std::string& summary() const { return summary_; }

 private:
  void Show(const std::string& line);

  std::string dsn_;
  size_t mirrors_;
  std::optional<pg::Connection> store_;
  std::string shown_, summary_;
  base::Deadline next_show_ = base::Deadline::After(std::chrono::milliseconds(0));
};

}  // namespace tidemark::cli
