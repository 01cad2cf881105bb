// How verify cuts one table into chunks, each of which the two servers can be asked for alone: by
// its key, where both put its values in the same order, else by the source's blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/verify_server.h"
#include "temporal/dataset.h"

namespace tidemark::capture {

/// A key's values as text, in the order of the key columns.
using KeyBound = std::vector<std::string>;

class KeyCut {
 public:
  /// nullopt where the table has no key, or its two sides may not agree on the order of its values
  /// (collations, encodings, types of one's own).
  static std::optional<KeyCut> Of(VerifyServer& source, VerifyServer& mirror,
                                  const temporal::Dataset& dataset);

  /// SQL for the rows of a chunk: beyond `lower`, up to and with `upper`; nullopt is no bound.
  /// Empty when there are none.
  std::string Condition(const std::optional<KeyBound>& lower,
                        const std::optional<KeyBound>& upper) const;
  /// One row with the key that ends a chunk of `rows` rows of `from`, which has its conditions;
  /// none when there are fewer rows.
  std::string NextBound(const std::string& from, int64_t rows) const;

 private:
  struct Column {
    std::string name, type;  // quoted
  };
  explicit KeyCut(std::vector<Column> columns) : columns_(std::move(columns)) {}
  std::string Compared(const char* op, const KeyBound& bound) const;
  std::vector<Column> columns_;
};

/// How many blocks the largest heap of a source's table has: its own, or one of its partitions'.
int64_t BlocksOf(VerifyServer& source, pg::Oid table);

/// SQL for the rows in the blocks [from, to) of each heap.
std::string BlockCondition(int64_t from, int64_t to);

}  // namespace tidemark::capture
