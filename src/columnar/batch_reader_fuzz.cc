// A COPY BINARY stream of columns that the first bytes choose. What the reader takes, the encoder
// must give back: the same bytes, except for the null bit of an array, and none of another length.
#include "columnar/batch_reader.h"

#include <arrow/record_batch.h>

#include <cstdlib>

#include "base/error.h"
#include "columnar/copy_encoder.h"
#include "columnar/type_oid.h"

namespace {

using namespace tidemark::columnar;  // NOLINT: a fuzz target is one file
using tidemark::wire::CopyBinaryReader;
using tidemark::wire::CopyBinaryWriter;

const PostgresColumn kColumns[] = {
    {.type = kBool},
    {.type = kInt2},
    {.type = kInt4},
    {.type = kInt8},
    {.type = kFloat4},
    {.type = kFloat8},
    {.type = kNumeric},
    {.type = kNumeric, .modifier = 655366},   // (10,2)
    {.type = kNumeric, .modifier = 2490372},  // (38,0)
    {.type = kNumeric, .modifier = 4980778},  // (76,38)
    {.type = kNumeric, .modifier = 131080},   // (2,4)
    {.type = kText},
    {.type = kBytea},
    {.type = kJsonb},
    {.type = kDate},
    {.type = kTime},
    {.type = kTimestamp},
    {.type = kInterval},
    {.type = kUuid},
    {.type = ArrayOf(kInt4)},
    {.type = ArrayOf(kNumeric)},
    {.type = ArrayOf(kText)},
};
constexpr size_t kFirstArray = std::size(kColumns) - 3;
constexpr size_t kColumnCountMax = 3;

std::vector<std::string> RowsOf(const std::string& stream) {
  std::vector<std::string> rows;
  CopyBinaryReader reader;
  reader.Feed(stream);
  while (reader.Next() == CopyBinaryReader::Step::kRow) rows.emplace_back(reader.row_bytes());
  reader.ExpectEnd();
  return rows;
}

std::string ThroughBatches(std::span<const PostgresColumn> columns, const std::string& stream,
                           BatchLimits limits) {
  BatchReader reader(columns, limits);
  const CopyEncoder encoder(reader.schema());
  std::string out;
  CopyBinaryWriter writer(out);
  writer.WriteHeader();
  reader.Feed(stream);
  while (reader.Next() == BatchReader::Step::kBatch) {
    const auto batch = reader.TakeBatch();
    if (!batch->ValidateFull().ok()) std::abort();
    encoder.WriteBatch(*batch, out);
  }
  reader.ExpectEnd();
  writer.WriteTrailer();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t count = data[0] % kColumnCountMax + 1;
  const BatchLimits limits{.rows_max = data[1] % 8 + 1};
  if (size < 2 + count) return 0;
  std::vector<PostgresColumn> columns;
  bool has_array = false;
  for (size_t i = 0; i < count; ++i) {
    const size_t chosen = data[2 + i] % std::size(kColumns);
    columns.push_back(kColumns[chosen]);
    has_array |= chosen >= kFirstArray;
  }
  const std::string stream(reinterpret_cast<const char*>(data) + 2 + count, size - 2 - count);
  std::string out;
  try {
    out = ThroughBatches(columns, stream, limits);
  } catch (const tidemark::base::Error&) {
    return 0;
  }
  // From here on nothing may throw.
  const std::vector<std::string> before = RowsOf(stream), after = RowsOf(out);
  if (before.size() != after.size()) std::abort();
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].size() != after[i].size()) std::abort();
    if (!has_array && before[i] != after[i]) std::abort();
  }
  if (ThroughBatches(columns, out, {}) != out) std::abort();
  return 0;
}
