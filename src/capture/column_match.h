// Which columns of a table a Relation message means. It has names and types in the order of the
// columns' numbers, but no numbers: a name may have been given to another column since. What is
// dropped at the source never comes back, and a new column has a greater number than all before it;
// that decides nearly always, and names and types decide the rest. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::capture {

/// A column as the mirror has known it.
struct KnownColumn {
  int number;  // at the source
  std::string name;
  uint32_t type;
};

/// A column as the source's catalog has it now, which may be later than the message.
struct CatalogColumn {
  int number;
  std::string name;  // empty: dropped meanwhile
  uint32_t type;     // 0: dropped meanwhile
};

/// A column of the message.
struct MessageColumn {
  std::string name;
  uint32_t type;
};

/// The number of each column of `message`. `known` and `catalog` are ordered by number; `catalog`
/// holds all columns that ever were, but those that no publication carries. Throws 55000 when the
/// message has fewer columns than it must, or more than the catalog can account for.
std::vector<int> MatchColumns(const std::vector<MessageColumn>& message,
                              const std::vector<KnownColumn>& known,
                              const std::vector<CatalogColumn>& catalog);

}  // namespace tidemark::capture
