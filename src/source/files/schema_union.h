// One schema for the files of a pattern, by column name: what a file lacks is NULL, what two files
// hold in different types is refused.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace arrow {
class Field;
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::source {

class SchemaUnion {
 public:
  /// Adds a file's columns behind those known. Throws 42804, naming column and both files, for
  /// another type than an earlier file has; a column of only NULLs (type null) fits any.
  void Add(const std::string& path, const arrow::Schema& schema);

  std::shared_ptr<arrow::Schema> schema() const;

 private:
  struct Column {
    std::shared_ptr<arrow::Field> field;
    std::string path;  // that gave it its type
  };
  std::vector<Column> columns_;
};

/// The rows of `batch` with the columns of `schema`, which is a union that holds them.
std::shared_ptr<arrow::RecordBatch> Aligned(const std::shared_ptr<arrow::Schema>& schema,
                                            const arrow::RecordBatch& batch);

}  // namespace tidemark::source
