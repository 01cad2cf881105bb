// The naive model: the whole state of every published table, brought forward one commit at a time,
// and every row version that ever was. It knows nothing of batches, stores or LSN arithmetic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lsn.h"
#include "tests/oracle/tables.h"
#include "tests/oracle/test_decoding.h"

namespace tidemark::oracle {

/// One commit of the source.
struct Commit {
  uint32_t xid = 0;
  base::Lsn end;
  std::string committed_at;     // timestamptz text
  std::vector<Change> changes;  // of published tables only
};

/// Count of rows and sum of their hashes: equal for equal states, whatever the order.
struct Digest {
  int64_t rows = 0;
  uint64_t sum = 0;
  bool operator==(const Digest&) const = default;
  std::string ToString() const;
};

/// The same text as RowTextSql and the same hash as RowHashSql.
std::string RowText(const std::vector<std::optional<std::string>>& row);
uint64_t RowHash(const std::string& text);

/// A row version, by the ends of the commits that began and ended it; `to` is unset while alive.
struct Version {
  uint64_t hash = 0;
  base::Lsn from;
  std::optional<base::Lsn> to;
  auto operator<=>(const Version&) const = default;
};

/// Whether a row filter lets anything of a change of one table through.
bool PassesFilter(const Change& change);

class Model {
 public:
  Model();
  /// Throws std::runtime_error when a change does not fit the state.
  void Apply(const Commit& commit);
  Digest DigestOf(const std::string& table) const;
  /// All rows as RowText, sorted.
  std::vector<std::string> RowsOf(const std::string& table) const;
  /// Every version of a table with a key, sorted; those that ended by `first` left out, those that
  /// began before it counted from it.
  std::vector<Version> VersionsOf(const std::string& table, base::Lsn first) const;

 private:
  using Row = std::vector<std::optional<std::string>>;
  struct Live {
    Row row;
    base::Lsn from;
  };
  struct Bagged {
    Row row;
    size_t times = 0;
  };
  struct Table {
    const TableShape* shape = nullptr;
    std::vector<std::string> columns;              // by their names now
    std::vector<size_t> key;                       // positions
    std::unordered_map<std::string, Live> keyed;   // by the key's RowText
    std::unordered_map<std::string, Bagged> bag;   // by RowText
    Digest digest;
    std::vector<Version> closed;
    // Of the commit being applied: what its keys held before, where it was anything.
    std::map<std::string, std::optional<Version>> before;
  };
  void Apply(Table& table, const Change& change, base::Lsn end);
  void Insert(Table& table, Row row, base::Lsn end);
  Row Remove(Table& table, const std::string& key);
  void RemoveFromBag(Table& table, const Row& row);
  void Truncate(Table& table);
  void Rewrite(Table& table, int64_t added, base::Lsn end);
  static bool Passes(const Table& table, const Row& row);
  static Row RowOf(const Table& table, const Fields& fields, const Row* before);
  static std::string KeyOf(const Table& table, const Row& row);
  void Count(Table& table, const std::string& text, int64_t sign);

  std::map<std::string, Table> tables_;
};

}  // namespace tidemark::oracle
