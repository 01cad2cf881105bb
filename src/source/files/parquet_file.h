// A Parquet file as a stream of Arrow batches, read page by page. In a file pair of its own because
// Parquet's headers are heavy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace arrow {
class RecordBatchReader;
}  // namespace arrow
namespace arrow::io {
class RandomAccessFile;
}  // namespace arrow::io

namespace tidemark::source {

/// Throws 22000 with the path when it is no Parquet file.
std::shared_ptr<arrow::RecordBatchReader> OpenParquet(
    const std::string& path, const std::shared_ptr<arrow::io::RandomAccessFile>& file,
    int64_t batch_rows_max);

}  // namespace tidemark::source
