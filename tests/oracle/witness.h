// The second witness of the source's history: a test_decoding slot, created before the first row,
// read to its end now and then. Keeps every commit. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/lsn.h"
#include "pg/connection.h"
#include "tests/oracle/model.h"

namespace tidemark::oracle {

class Witness {
 public:
  /// Creates the slot `name` in the database of `dsn`.
  Witness(std::string dsn, std::string name);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// Reads what has been committed since the last call; `end` is the position it reached.
  /// Reconnects if the line is gone.
  base::Lsn Absorb();
  /// In commit order, those that changed no published table included.
  const std::vector<Commit>& commits() const { return commits_; }

 private:
  pg::Connection& Source();
  bool ReadSome(base::Lsn upto);

  std::string dsn_, name_;
  std::optional<pg::Connection> source_;
  std::vector<Commit> commits_;
};

}  // namespace tidemark::oracle
