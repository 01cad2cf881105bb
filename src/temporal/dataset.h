// One declared relation in the store: its identity, columns and names there, as the control tables
// keep them. A value; the store's rows are read and written by the functions below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"
#include "pg/relation.h"

namespace tidemark::temporal {

/// How a change finds the row it changes.
enum class Keying {
  kKey,       // by key columns
  kMultiset,  // by the whole old row (REPLICA IDENTITY FULL without a key)
  kAppend,    // never: only inserts and truncates are published
};

struct DatasetColumn {
  int number = 0;  // attnum upstream
  std::string name;
  pg::Oid source_type = 0;
  int type_modifier = -1;
  std::string type_sql;
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
  bool attached = false;

  /// tidemark_current.d<id>, tidemark_history.d<id>, quoted.
  std::string Current() const;
  std::string History() const;
  std::string ViewSchema() const { return name.schema + "_history"; }
  /// Quoted column names separated by ", ", each with `prefix` in front.
  std::string ColumnList(const std::string& prefix = "") const;
  std::vector<size_t> KeyPositions() const;
  bool AllBinary() const;
};

/// Registers the dataset (unattached) and its columns with tx_from 1; sets `id`.
void StoreDataset(pg::Connection& store, Dataset& dataset);
/// The datasets of a journal, attached or not, by id. Whether a column travels as bytes is not
/// kept: TypeMap::At(source_type).binary says so anew.
std::vector<Dataset> LoadDatasets(pg::Connection& store, int journal);
/// Removes the rows of datasets that never got attached.
void ForgetUnattached(pg::Connection& store, int journal);

}  // namespace tidemark::temporal
