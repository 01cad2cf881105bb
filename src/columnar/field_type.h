// What a PostgreSQL column becomes in Arrow, and back: types only, no values. The field keeps the
// column's PostgreSQL type in its metadata, so a batch can be written back by its schema alone.
// Pure functions. The table of all types: docs/reference/types.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace arrow {
class DataType;
class Field;
class Schema;
}  // namespace arrow

namespace tidemark::columnar {

/// How a column's values stand in a batch.
enum class Carry {
  kArrowType,  // as the Arrow type of the table
  kPostgres,   // as binary that is PostgreSQL's own binary value: holds every value of any type
};

/// A column as pg_attribute and pg_type describe it.
struct PostgresColumn {
  std::string name;
  uint32_t type = 0;      // pg_attribute.atttypid
  int32_t modifier = -1;  // atttypmod; for a domain pg_type.typtypmod
  /// For a domain the type it is sent as, which is the base type below all domains; else 0.
  uint32_t base_type = 0;
  /// As format_type says it; for readers of the batch, not used here.
  std::string type_sql;
  Carry carry = Carry::kArrowType;

  uint32_t sent_as() const { return base_type != 0 ? base_type : type; }
  bool operator==(const PostgresColumn&) const = default;
};

/// The first field of every batch: int64, not null.
inline constexpr char kOrdinalName[] = "_ordinal";

/// Metadata of a field: the column's type, its OID, its modifier unless -1, and the base type's
/// OID of a domain.
inline constexpr char kTypeKey[] = "tidemark.pg_type";
inline constexpr char kTypeOidKey[] = "tidemark.pg_type_oid";
inline constexpr char kModifierKey[] = "tidemark.pg_type_modifier";
inline constexpr char kBaseTypeOidKey[] = "tidemark.pg_base_type_oid";

/// The nullable field for `column`. Never throws for a type: what has no Arrow type is binary.
std::shared_ptr<arrow::Field> FieldOf(const PostgresColumn& column);

/// `_ordinal`, then the fields of `columns` in their order.
std::shared_ptr<arrow::Schema> SchemaOf(std::span<const PostgresColumn> columns);

/// The column that `field` was made from, or for a field without our metadata the column that
/// takes its values (foreign_type.h). Throws 0A000 when PostgreSQL has no such type, 42804 when
/// type and metadata contradict each other.
PostgresColumn ColumnOf(const arrow::Field& field);

/// Whether `field` has another Arrow type than FieldOf(column) has, so that its values need
/// foreign_encoder.h. `column` is ColumnOf(field).
bool IsForeign(const arrow::Field& field, const PostgresColumn& column);

/// The type of the arrays that hold the values: an extension type's storage, else `type` itself.
std::shared_ptr<arrow::DataType> StorageOf(const std::shared_ptr<arrow::DataType>& type);

}  // namespace tidemark::columnar
