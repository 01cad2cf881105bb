// The current rows of a dataset in the order in which they lie, as digests: read by a connection
// and a thread of its own, a few blocks ahead of its user. Nobody else may write the dataset
// meanwhile (the capture's lease sees to that); what rewrites its table, such as VACUUM FULL, is
// told by the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/handover.h"
#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/row_digest.h"
#include "temporal/sieve.h"

namespace tidemark::temporal {

class CurrentScan {
 public:
  struct Row {
    RowDigest digest;
    RowPlace place;
  };
  using Rows = std::vector<Row>;

  /// Begins to read `columns` of the dataset, all binary, in that order. Borrows the digester.
  CurrentScan(const std::string& store_dsn, const Dataset& dataset,
              const std::vector<DatasetColumn>& columns, const RowDigester& digester,
              std::stop_token stop);
  /// Stops it, if it has not ended.
  ~CurrentScan();

  /// The next rows, or nullopt after the last. Throws the store's error, 57014 on stop.
  std::optional<Rows> Next(const std::stop_token& stop);
  /// The file that the table lies in.
  pg::Oid file() const { return file_; }

 private:
  void Run(pg::Connection& store, const std::string& sql, const std::stop_token& stop);

  const RowDigester* digester_;
  base::Handover<Rows> rows_;
  pg::Oid file_ = 0;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> passed_on_;  // the user's stop
  std::jthread thread_;
};

/// The file that the dataset's current table lies in, as the connection sees it.
pg::Oid CurrentFile(pg::Connection& store, const Dataset& dataset);

}  // namespace tidemark::temporal
