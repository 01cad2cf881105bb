// What a batch of changes does to one dataset, gathered in memory before any of it reaches the
// store: versions of one key are chained here, so that only the last one touches the current table
// and the ones between go straight to history. One version per key and tx: what a transaction
// overwrites itself leaves no trace. Not thread-safe.
//
//   key unknown ──update/delete──► base in the store closed at tx      (Entry::base)
//        │insert                        │update/insert
//        ▼                              ▼
//      live version since tx ──update──► closed [since, tx) + live since tx
//                            ──delete──► closed [since, tx)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "temporal/dataset.h"
#include "temporal/image.h"
#include "wire/oid_translation.h"
#include "wire/pgoutput.h"

namespace tidemark::temporal {

/// Per column the plan that translates OIDs and text inside its values; nullptr where none are.
using Translations = std::vector<const wire::TypeNode*>;

/// 128 bits that identify a row's exact bytes, as sent by the source.
struct RowHash {
  uint64_t high = 0, low = 0;
  bool operator==(const RowHash&) const = default;
};
struct RowHashHash {
  size_t operator()(const RowHash& hash) const { return hash.low; }
};
/// `fields` are the values of a whole row in column order.
RowHash HashRow(wire::pgoutput::Tuple fields);

class Transition {
 public:
  using Tuple = wire::pgoutput::Tuple;

  Transition(const Dataset& dataset, Translations translations);

  void Insert(int64_t tx, Tuple row);
  /// `old_row` is empty when the source sent none (the key did not change).
  void Update(int64_t tx, wire::pgoutput::OldTuple kind, Tuple old_row, Tuple row);
  void Delete(int64_t tx, wire::pgoutput::OldTuple kind, Tuple old_row);

  const Dataset& dataset() const { return *dataset_; }
  bool empty() const { return changes_ == 0; }
  size_t changes() const { return changes_; }
  /// The key of the newest change, for messages: `id=7`.
  std::string DescribeKey() const;
  void Clear();

  // ---- what apply.cc reads

  /// What happened to one row that was or is known by one key.
  struct Entry {
    std::string_view key;     // fields of the key, as in an image
    bool base = false;        // the store has a row under `key`, to be closed …
    int64_t base_closed = 0;  // … at this tx
    bool base_moved = false;  // set by apply: the base is deleted, the live version comes anew
    bool live = false;
    Image image;              // of the live version
    int64_t from = 0;
    uint32_t kept_from = 0;   // the entry whose base holds the kept fields of `image`
    RowHash hash;             // multisets only: of the live version, or of the base to close
  };
  /// A version that began and ended inside the batch.
  struct Closed {
    Image image;
    int64_t from, to;
    uint32_t kept_from;
  };
  std::vector<Entry>& entries() { return entries_; }
  std::vector<Closed>& closed() { return closed_; }
  Arena& arena() { return arena_; }

  // ---- what publish tells
  int64_t puts() const { return puts_; }
  int64_t deletions() const { return deletions_; }
  int64_t rows_added() const { return rows_added_; }

 private:
  std::string_view KeyOf(Tuple row, Tuple fallback);
  Image ImageOf(Tuple row, Tuple old_row);
  void CheckWidth(Tuple row) const;
  void EndLive(Entry& entry, int64_t tx);
  void PutLive(uint32_t entry, int64_t tx, Image image, uint32_t kept_from);
  uint32_t FindOrAddBase(std::string_view key);
  uint32_t FindOrAddFree(std::string_view key);
  void DeleteMultiset(int64_t tx, Tuple old_row);
  void InsertMultiset(int64_t tx, Tuple row, Tuple old_row);

  const Dataset* dataset_;
  Translations translations_;
  std::vector<size_t> key_positions_;
  Arena arena_;
  std::vector<Entry> entries_;
  std::vector<Closed> closed_;
  std::unordered_map<std::string_view, uint32_t> by_key_;
  std::unordered_multimap<RowHash, uint32_t, RowHashHash> by_hash_;
  size_t changes_ = 0;
  int64_t puts_ = 0, deletions_ = 0, rows_added_ = 0;
};

}  // namespace tidemark::temporal
