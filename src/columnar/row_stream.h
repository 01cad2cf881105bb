// Rows there and back, for tests only: fields to a COPY BINARY stream, a stream to batches, batches
// to a stream again.
#pragma once

#include <arrow/record_batch.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "columnar/batch_reader.h"
#include "columnar/copy_encoder.h"
#include "wire/copy_binary.h"

namespace tidemark::columnar {

using Row = std::vector<std::optional<std::string>>;
using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

inline std::string StreamOf(std::span<const Row> rows) {
  std::string stream;
  wire::CopyBinaryWriter writer(stream);
  writer.WriteHeader();
  for (const Row& row : rows) {
    writer.WriteRow(static_cast<int16_t>(row.size()));
    for (const auto& field : row) writer.WriteField(field);
  }
  writer.WriteTrailer();
  return stream;
}

/// Feeds `stream` in chunks of `chunk_size`; each batch must hold together by Arrow's own check.
inline Batches ReadBatches(BatchReader& reader, std::string_view stream,
                           size_t chunk_size = std::string::npos) {
  Batches batches;
  while (true) {
    const std::string chunk(stream.substr(0, chunk_size));
    stream.remove_prefix(chunk.size());
    reader.Feed(chunk);
    BatchReader::Step step;
    while ((step = reader.Next()) == BatchReader::Step::kBatch) {
      batches.push_back(reader.TakeBatch());
      const arrow::Status status = batches.back()->ValidateFull();
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    if (step == BatchReader::Step::kEnd || stream.empty()) break;
  }
  reader.ExpectEnd();
  return batches;
}

inline std::string StreamOf(std::shared_ptr<arrow::Schema> schema, const Batches& batches,
                            CopyEncoder::Options options = {}) {
  const CopyEncoder encoder(std::move(schema), options);
  std::string stream;
  wire::CopyBinaryWriter writer(stream);
  writer.WriteHeader();
  for (const auto& batch : batches) encoder.WriteBatch(*batch, stream);
  writer.WriteTrailer();
  return stream;
}

}  // namespace tidemark::columnar
