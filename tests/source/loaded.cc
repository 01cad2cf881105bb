#include "tests/source/loaded.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/identifier.h"
#include "columnar/copy_encoder.h"
#include "pg/copy.h"
#include "wire/copy_binary.h"

namespace tidemark::tests {

namespace {

void Examine(const source::Batch& batch, const source::RelationShape& shape, int64_t expected,
             Loaded& loaded) {
  EXPECT_TRUE(batch.rows->schema()->Equals(*shape.schema)) << batch.rows->schema()->ToString();
  EXPECT_GT(batch.rows->num_rows(), 0);
  EXPECT_EQ(batch.first_ordinal, expected);
  const arrow::Status status = batch.rows->ValidateFull();
  EXPECT_TRUE(status.ok()) << status.ToString();
  const auto& ordinals = static_cast<const arrow::Int64Array&>(*batch.rows->column(0));
  for (int64_t row = 0; row < ordinals.length(); ++row) {
    ASSERT_EQ(ordinals.Value(row), expected + row);
  }
  ++loaded.batches;
  loaded.rows_max = std::max(loaded.rows_max, batch.rows->num_rows());
  loaded.bytes_max =
      std::max(loaded.bytes_max, arrow::util::ReferencedBufferSize(*batch.rows).ValueOr(0));
}

}  // namespace

source::Limit Soon() { return {base::Deadline::After(std::chrono::seconds(60)), {}}; }

Loaded Load(source::Reader& reader, pg::Connection& store, const std::string& table) {
  const source::RelationShape& shape = reader.shape();
  EXPECT_EQ(shape.schema->num_fields(), static_cast<int>(shape.columns.size()) + 1);
  std::string columns;
  for (const auto& column : shape.columns) {
    columns += fmt::format(", {} {}", base::QuoteIdentifier(column.column.name),
                           column.as_text ? "text" : column.column.type_sql);
  }
  store.Execute(fmt::format("CREATE TABLE {} (_ordinal bigint{})", table, columns));
  const columnar::CopyEncoder encoder(shape.schema, {.write_ordinal = true});
  pg::CopyIn copy(store, fmt::format("COPY {} FROM STDIN (FORMAT binary)", table));
  std::string out;
  wire::CopyBinaryWriter writer(out);
  writer.WriteHeader();
  Loaded loaded;
  int64_t next = 1;
  for (;;) {
    source::Step step = reader.Next(Soon());
    if (const auto* end = std::get_if<source::End>(&step)) {
      loaded.end = *end;
      break;
    }
    const auto& batch = std::get<source::Batch>(step);
    Examine(batch, shape, next, loaded);
    next += batch.rows->num_rows();
    encoder.WriteBatch(*batch.rows, out);
    copy.Write(out);
    out.clear();
  }
  writer.WriteTrailer();
  copy.Write(out);
  EXPECT_EQ(copy.Finish(), loaded.end.rows);
  EXPECT_EQ(loaded.end.rows, next - 1);
  return loaded;
}

}  // namespace tidemark::tests
