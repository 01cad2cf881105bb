#include "source/files/file_format.h"

#include <arrow/csv/options.h>
#include <arrow/csv/reader.h>
#include <arrow/array.h>
#include <arrow/io/compressed.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "source/files/json_lines.h"
#include "source/files/parquet_file.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kDataException{"22000"};
constexpr int32_t kCsvBlockBytes = 4 << 20;

struct Ending {
  const char* text;
  FileFormat format;
};
constexpr Ending kEndings[] = {
    {".parquet", FileFormat::kParquet},   {".pq", FileFormat::kParquet},
    {".csv", FileFormat::kCsv},           {".ndjson", FileFormat::kJsonLines},
    {".jsonl", FileFormat::kJsonLines},   {".arrow", FileFormat::kArrowFile},
    {".feather", FileFormat::kArrowFile}, {".ipc", FileFormat::kArrowFile},
    {".arrows", FileFormat::kArrowStream}};

// The name without a compression's ending, and the compression.
std::pair<std::string, arrow::Compression::type> Unwrapped(const std::string& path) {
  if (path.ends_with(".gz")) return {path.substr(0, path.size() - 3), arrow::Compression::GZIP};
  if (path.ends_with(".zst")) return {path.substr(0, path.size() - 4), arrow::Compression::ZSTD};
  return {path, arrow::Compression::UNCOMPRESSED};
}

template <typename T>
T TakeFile(arrow::Result<T> result, const std::string& path) {
  CheckFile(result.status(), path);
  return std::move(result).ValueUnsafe();
}

// The file form of IPC, whose batches can be asked for one by one.
class ArrowFileBatches final : public arrow::RecordBatchReader {
 public:
  explicit ArrowFileBatches(std::shared_ptr<arrow::ipc::RecordBatchFileReader> file)
      : file_(std::move(file)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return file_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    *out = nullptr;
    if (next_ == file_->num_record_batches()) return arrow::Status::OK();
    ARROW_ASSIGN_OR_RAISE(*out, file_->ReadRecordBatch(next_++));
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  int next_ = 0;
};

arrow::csv::ConvertOptions CsvConversion() {
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.null_values = {""};
  convert.strings_can_be_null = true;
  convert.quoted_strings_can_be_null = false;
  convert.true_values = {"true"};
  convert.false_values = {"false"};
  return convert;
}

std::shared_ptr<arrow::RecordBatchReader> OpenCsv(
    const std::string& path, const std::shared_ptr<arrow::io::RandomAccessFile>& file,
    const arrow::csv::ConvertOptions& convert) {
  auto read = arrow::csv::ReadOptions::Defaults();
  read.use_threads = false;
  read.block_size = kCsvBlockBytes;
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.newlines_in_values = true;
  return TakeFile(arrow::csv::StreamingReader::Make(arrow::io::default_io_context(),
                                                    Decompressed(path, file), read, parse, convert),
                  path);
}

// The header's names, in order.
std::vector<std::string> CsvNames(const std::string& path,
                                  const std::shared_ptr<arrow::io::RandomAccessFile>& file) {
  const auto names = OpenCsv(path, file, CsvConversion())->schema()->field_names();
  CheckFile(file->Seek(0), path);
  return names;
}

std::shared_ptr<arrow::DataType> CsvType(const columnar::PostgresColumn& column) {
  return columnar::FieldOf(column)->type();
}

void LearnCsvTypes(const std::string& path,
                   const std::shared_ptr<arrow::io::RandomAccessFile>& file, const Limit& limit,
                   TextTypes& types) {
  auto convert = CsvConversion();
  const auto names = CsvNames(path, file);
  for (const std::string& name : names) convert.column_types[name] = arrow::utf8();
  for (const std::string& name : names) types.At(name);
  const auto batches = OpenCsv(path, file, convert);
  for (;;) {
    limit.Check();
    std::shared_ptr<arrow::RecordBatch> batch;
    CheckFile(batches->ReadNext(&batch), path);
    if (batch == nullptr) return;
    for (int i = 0; i < batch->num_columns(); ++i) {
      TextType& type = types.At(names[static_cast<size_t>(i)]);
      const auto& values = static_cast<const arrow::StringArray&>(*batch->column(i));
      for (int64_t row = 0; row < values.length(); ++row) {
        if (!values.IsNull(row)) type.SeeText(values.GetView(row));
      }
    }
  }
}

// Gives each column its PostgreSQL type with it.
class CsvBatches final : public arrow::RecordBatchReader {
 public:
  CsvBatches(std::shared_ptr<arrow::RecordBatchReader> batches, const TextTypes& types)
      : batches_(std::move(batches)) {
    arrow::FieldVector fields;
    for (const std::string& name : batches_->schema()->field_names()) {
      fields.push_back(columnar::FieldOf(types.types.at(name).CsvColumn(name)));
    }
    schema_ = arrow::schema(std::move(fields));
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    ARROW_RETURN_NOT_OK(batches_->ReadNext(out));
    if (*out == nullptr) return arrow::Status::OK();
    *out = arrow::RecordBatch::Make(schema_, (*out)->num_rows(), (*out)->columns());
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Schema> schema_;
};

}  // namespace

FileFormat FormatOf(const std::string& path) {
  const auto [name, compression] = Unwrapped(path);
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    if (compression != arrow::Compression::UNCOMPRESSED && HasTypes(ending.format)) break;
    return ending.format;
  }
  throw base::Error(base::kFeatureNotSupported,
                    fmt::format("the format of file \"{}\" is not known", path))
      .Hint("Known endings: .parquet, .csv, .ndjson, .jsonl, .arrow, .feather, .ipc, .arrows; "
            "of text also with .gz or .zst.");
}

bool HasTypes(FileFormat format) {
  return format != FileFormat::kCsv && format != FileFormat::kJsonLines;
}

std::shared_ptr<arrow::RecordBatchReader> OpenTyped(
    FileFormat format, const std::string& path,
    const std::shared_ptr<arrow::io::RandomAccessFile>& file, int64_t batch_rows_max) {
  switch (format) {
    case FileFormat::kParquet:
      return OpenParquet(path, file, batch_rows_max);
    case FileFormat::kArrowFile:
      return std::make_shared<ArrowFileBatches>(
          TakeFile(arrow::ipc::RecordBatchFileReader::Open(file), path));
    default:
      return TakeFile(arrow::ipc::RecordBatchStreamReader::Open(
                          std::static_pointer_cast<arrow::io::InputStream>(file)),
                      path);
  }
}

std::shared_ptr<arrow::RecordBatchReader> OpenText(
    FileFormat format, const std::string& path,
    const std::shared_ptr<arrow::io::RandomAccessFile>& file, const TextTypes& types) {
  if (format == FileFormat::kJsonLines) {
    return OpenJsonLines(Decompressed(path, file), path, types);
  }
  auto convert = CsvConversion();
  for (const std::string& name : types.names) {
    convert.column_types[name] = CsvType(types.types.at(name).CsvColumn(name));
  }
  return std::make_shared<CsvBatches>(OpenCsv(path, file, convert), types);
}

void LearnTypes(FileFormat format, const std::string& path,
                const std::shared_ptr<arrow::io::RandomAccessFile>& file, const Limit& limit,
                TextTypes& types) {
  if (format == FileFormat::kJsonLines) {
    LearnJsonTypes(Decompressed(path, file), path, limit, types);
  } else {
    LearnCsvTypes(path, file, limit, types);
  }
}

void CheckFile(const arrow::Status& status, const std::string& path) {
  if (status.ok()) return;
  const bool io = status.IsIOError() && status.detail() != nullptr;  // with an errno
  throw base::Error(io ? base::kIoError : kDataException,
                    fmt::format("could not read file \"{}\"", path))
      .Detail(status.message());
}

std::shared_ptr<arrow::io::InputStream> Decompressed(
    const std::string& path, const std::shared_ptr<arrow::io::RandomAccessFile>& file) {
  const auto compression = Unwrapped(path).second;
  if (compression == arrow::Compression::UNCOMPRESSED) return file;
  const std::shared_ptr<arrow::util::Codec> codec =
      TakeFile(arrow::util::Codec::Create(compression), path);
  return TakeFile(arrow::io::CompressedInputStream::Make(codec.get(), file), path);
}

}  // namespace tidemark::source
