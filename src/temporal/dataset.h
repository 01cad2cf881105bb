// One declared relation in the store: its identity, columns and names there, as the control tables
// keep them. A value; the store's rows are read and written by the functions below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"
#include "pg/relation.h"

namespace tidemark::temporal {

/// How a dataset is captured. Those of a mirror are kCdc.
enum class Strategy { kSnapshot, kCursor, kCdc };

/// How a change finds the row it changes.
enum class Keying {
  kKey,       // by key columns
  kMultiset,  // by the whole old row (REPLICA IDENTITY FULL without a key)
  kAppend,    // never: only inserts and truncates are published
};

struct DatasetColumn {
  int number = 0;  // its identity here: attnum upstream at first, or our own count
  int source_number = 0;  // its identity at the source: attnum; 0 where the source has none
  std::string name;
  pg::Oid source_type = 0;
  int type_modifier = -1;
  std::string type_sql;
  int64_t null_before = 0;  // rows read a value here that they did not have before this tx
  bool binary = true;  // false: the value travels as text and is cast in the store
};

struct Dataset {
  int id = 0;
  int journal = 0;
  base::QualifiedName name;  // of the parent table, what users see
  pg::Oid source_oid = 0;
  Keying keying = Keying::kAppend;
  std::vector<DatasetColumn> columns;    // in the order of the images
  std::vector<std::string> key_columns;  // empty unless kKey
  std::string row_filter;                // the publication's; empty for all rows
  std::string source_state;              // SourceTable::state when it was last read whole
  Strategy strategy = Strategy::kCdc;
  bool attached = false;
  int64_t tx_first = 0;  // of its first state; 0 until attached
  /// Columns that the source no longer has, by their last names; old row versions keep their values
  /// in columns called RetiredName.
  std::vector<DatasetColumn> retired;

  /// tidemark_current.d<id>: the newest row versions.
  std::string Current() const;
  /// tidemark_history.d<id>: all closed row versions. Write to OpenHistory(), which takes the new
  /// ones.
  std::string History() const;
  std::string OpenHistory() const;
  /// tidemark_versions.d<id>: both together.
  std::string Versions() const;
  std::string ViewSchema() const { return name.schema + "_history"; }
  /// Quoted column names separated by ", ", each with `prefix` in front.
  std::string ColumnList(const std::string& prefix = "") const;
  /// The same followed by the retired columns: all that a row version holds.
  std::string StoredColumnList(const std::string& prefix = "") const;
  std::vector<size_t> KeyPositions() const;
  bool AllBinary() const;
};

/// How current and history call a retired column.
std::string RetiredName(int number);

/// key, multiset or append, as the control tables say it.
std::string_view KeyingWord(Keying keying);

/// Registers the dataset (unattached) and its columns with tx_from 1; sets `id`.
void StoreDataset(pg::Connection& store, Dataset& dataset);
/// Keeps source_oid, row_filter and source_state as they are now.
void StoreSource(pg::Connection& store, const Dataset& dataset);
/// Keeps the column's source_number.
void StoreSourceNumber(pg::Connection& store, const Dataset& dataset, const DatasetColumn& column);
/// The datasets of a journal, attached or not, by id. Whether a column travels as bytes is not
/// kept: TypeMap::At(source_type).binary says so anew.
std::vector<Dataset> LoadDatasets(pg::Connection& store, int journal);
/// The text of a text[] parameter.
std::string TextArray(const std::vector<std::string>& values);
/// Removes the rows of datasets that never got attached.
void ForgetUnattached(pg::Connection& store, int journal);

}  // namespace tidemark::temporal
