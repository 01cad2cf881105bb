// The digest of a transition that puts every row there is, of a first capture: computed by a thread
// of its own from the rows on their way into the store, so that the store need not read them all
// again. What docs/formats/version.md says and version_chain.h does in SQL; where a text is not
// certain (value_text.h) there is none, and the store must do it.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/handover.h"
#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/hash_order.h"
#include "base/sha256.h"

namespace tidemark::temporal {

class PutDigest {
 public:
  /// Nothing when the columns have types, or the store an encoding, for which only SQL will do.
  static std::unique_ptr<PutDigest> Begin(const pg::Connection& store,
                                          const std::vector<DatasetColumn>& columns);
  explicit PutDigest(std::vector<DatasetColumn> columns);
  /// Gives it up, if Finish was not called.
  ~PutDigest();

  /// Takes whole rows as COPY BINARY has them, in the store's form: all columns and nothing else.
  void Give(std::string rows);
  /// No more come. The digest in hex; nothing if some value had no certain text, or the temporary
  /// file that many rows need could not be written.
  std::optional<std::string> Finish();

 private:
  void Run(const std::stop_token& stop);
  bool HashRows(std::string_view rows);
  std::string Combine();

  std::vector<DatasetColumn> columns_;
  base::Handover<std::string> rows_;
  base::Sha256 sha256_;
  HashOrder order_;
  std::string row_, text_;
  std::optional<std::string> digest_;
  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace tidemark::temporal
