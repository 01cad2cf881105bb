// Changing the shape of an attached dataset: columns that come, go, are renamed or get another
// type, and another key. Inside the transaction that applies and publishes the first rows of the
// new shape (number `tx`), so that nobody sees one without the other. The rows of the past keep
// their values: a dropped column stays in current and history under RetiredName and in the view of
// all versions.
//
// Takes ACCESS EXCLUSIVE locks, in the order parent, current, history, before them on whatever
// inherits from the table or the table from. A retype that rewrites rows is PostgreSQL's own ALTER
// TABLE and shares its one flaw: a REPEATABLE READ transaction that began before and had not yet
// touched the table finds it empty. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

class Reshape {
 public:
  /// Changes `dataset` along with the store. `tx` is the first one of the new shape.
  Reshape(pg::Connection& store, Dataset& dataset, int64_t tx);
  Reshape(const Reshape&) = delete;
  Reshape& operator=(const Reshape&) = delete;

  /// Adds a column at the end; number 0 gives it the next free one. Current rows read
  /// `missing_value`, an SQL expression without variables, or NULL; at an instant before this tx
  /// all rows read NULL.
  void Add(DatasetColumn column, const std::optional<std::string>& missing_value = std::nullopt);
  /// Throws 42P10 for a column of the key: set another key first.
  void Drop(const std::string& name);
  void Rename(const std::string& from, const std::string& to);
  /// In place when every value that is kept has the same meaning in the new type (it casts there
  /// and back unchanged); otherwise the column is dropped and a new one of its name added. True: in
  /// place. Throws 42804 for a key column that cannot be changed in place.
  bool Retype(const std::string& name, const DatasetColumn& as);
  /// From now on Retype may begin a key column anew, too: there are no current rows.
  void ReplaceKeys() { replaces_keys_ = true; }
  void DropKey();
  /// Drops it, and from this tx on rows have none.
  void LeaveKey();
  /// Throws 23505 when the current rows are not unique in it, 23502 when it has NULLs.
  void SetKey(const std::vector<std::string>& key);
  /// The source may send NULLs from now on.
  void AllowNulls(const std::string& name);

  /// Whether anything was changed.
  bool changed() const { return changed_; }
  /// Makes view and functions anew, if something was changed, and puts the links of inheritance on
  /// again that fit; the others are off (inheritance.h). Call last.
  void Finish();

 private:
  void Begin();
  /// ALTER TABLE of what holds row versions, apart from the current ones.
  void AlterKept(const std::string& what);
  DatasetColumn& Find(const std::string& name);
  bool Lossless(const std::string& relation, const std::string& column, const std::string& from,
                const std::string& to);
  void Replace(const std::string& name, const DatasetColumn& as);
  void OpenRow(const DatasetColumn& column, int position);
  int CloseRow(const DatasetColumn& column);

  pg::Connection* store_;
  Dataset* dataset_;
  std::string tx_;
  bool changed_ = false, replaces_keys_ = false, linked_ = false;
};

/// Columns of current and parent that refuse NULLs.
std::vector<std::string> NotNullColumns(pg::Connection& store, const Dataset& dataset);

/// What a source has now.
struct SourceShape {
  std::vector<DatasetColumn> columns;  // told apart by name
  std::vector<std::string> key;
  std::vector<std::string> nullable;  // columns that may be NULL
  /// All rows of the new shape are at hand. Otherwise a column whose values do not all fit its new
  /// type cannot be begun anew, since rows that are not at hand would lose theirs: 42804.
  bool complete = true;
};

/// What a source has now whose columns have numbers of their own, which stay when names change.
struct NumberedShape {
  std::vector<DatasetColumn> columns;
  std::vector<std::string> key;       // by the new names; empty unless the dataset has a key
  std::vector<std::string> nullable;  // columns that may be NULL
  /// By source_number: what rows that were there before a column read in it, an SQL expression
  /// without variables. NULL where there is none.
  std::map<int, std::string> missing;
  /// As SourceShape's.
  bool complete = false;
  /// There are no current rows: a key column, too, may be begun anew.
  bool replaces_keys = false;
};

/// Brings an attached dataset to the shape of its source: a column of another name and the same
/// source_number is renamed. True if anything was changed. Throws as FollowShape.
bool FollowNumbers(pg::Connection& store, Dataset& dataset, const NumberedShape& now, int64_t tx);

/// For a table that was made anew at the source: columns of equal names are the same ones. Gives
/// the dataset's columns the numbers that they have in `now`, and others none.
void MatchByName(Dataset& dataset, const NumberedShape& now);

/// How changes find their rows from now on: a hash of each row is kept for multisets only. Rows
/// that have none yet must all be replaced (Reduction does).
void SetKeying(pg::Connection& store, Dataset& dataset, Keying keying, int64_t tx);

/// Gives the dataset another name, with everything that reads it.
void Rename(pg::Connection& store, Dataset& dataset, const base::QualifiedName& name);

/// Brings an attached dataset to the shape of its source. True if anything was changed.
bool FollowShape(pg::Connection& store, Dataset& dataset, const SourceShape& now, int64_t tx);

}  // namespace tidemark::temporal
