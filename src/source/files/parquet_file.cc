#include "source/files/parquet_file.h"

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/properties.h>

#include <utility>

#include "source/files/file_format.h"

namespace tidemark::source {

namespace {

constexpr int64_t kColumnBufferBytes = 1 << 20;

// The batches, and the reader that they come from.
class ParquetBatches final : public arrow::RecordBatchReader {
 public:
  ParquetBatches(std::unique_ptr<parquet::arrow::FileReader> file,
                 std::shared_ptr<arrow::RecordBatchReader> batches)
      : file_(std::move(file)), batches_(std::move(batches)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return batches_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    return batches_->ReadNext(out);
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
};

}  // namespace

std::shared_ptr<arrow::RecordBatchReader> OpenParquet(
    const std::string& path, const std::shared_ptr<arrow::io::RandomAccessFile>& file,
    int64_t batch_rows_max) {
  parquet::ReaderProperties reading;
  reading.enable_buffered_stream();
  reading.set_buffer_size(kColumnBufferBytes);
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_pre_buffer(false);
  properties.set_batch_size(batch_rows_max);
  properties.set_arrow_extensions_enabled(true);
  parquet::arrow::FileReaderBuilder builder;
  CheckFile(builder.Open(file, reading), path);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  CheckFile(builder.properties(properties)->Build(&reader), path);
  std::shared_ptr<arrow::RecordBatchReader> batches;
  auto made = reader->GetRecordBatchReader();
  CheckFile(made.status(), path);
  batches = std::move(made).ValueUnsafe();
  return std::make_shared<ParquetBatches>(std::move(reader), std::move(batches));
}

}  // namespace tidemark::source
