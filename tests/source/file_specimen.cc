#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "source/files/file_relation.h"
#include "tests/cluster.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {

namespace {

constexpr int kBatchRows = 1000;
constexpr int kBrokenRows = 9000;

void Must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <typename T>
T Must(arrow::Result<T> result) {
  Must(result.status());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::Schema> Fields() {
  return arrow::schema({arrow::field("id", arrow::int64()), arrow::field("name", arrow::utf8()),
                        arrow::field("amount", arrow::float64())});
}

std::shared_ptr<arrow::RecordBatch> RowsFrom(int first, int end) {
  arrow::Int64Builder ids;
  arrow::StringBuilder names;
  arrow::DoubleBuilder amounts;
  for (int id = first; id < end; ++id) {
    Must(ids.Append(id));
    Must(id % 7 != 0 ? names.Append(fmt::format("row {}", id)) : names.AppendNull());
    Must(amounts.Append(id + 0.25));
  }
  return arrow::RecordBatch::Make(
      Fields(), end - first,
      {Must(ids.Finish()), Must(names.Finish()), Must(amounts.Finish())});
}

std::vector<std::shared_ptr<arrow::RecordBatch>> Batches(int rows) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (int first = 1; first <= rows; first += kBatchRows) {
    batches.push_back(RowsFrom(first, std::min(first + kBatchRows, rows + 1)));
  }
  return batches;
}

void WriteParquet(const std::string& path, int rows) {
  const auto out = Must(arrow::io::FileOutputStream::Open(path));
  const auto table = Must(arrow::Table::FromRecordBatches(Fields(), Batches(rows)));
  const auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
  Must(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, kBatchRows,
                                  properties));
  Must(out->Close());
}

template <typename MakeWriter>
void WriteArrow(const std::string& path, int rows, MakeWriter make) {
  const auto out = Must(arrow::io::FileOutputStream::Open(path));
  const auto writer = Must(make(out, Fields()));
  for (const auto& batch : Batches(rows)) Must(writer->WriteRecordBatch(*batch));
  Must(writer->Close());
  Must(out->Close());
}

void WriteArrowFile(const std::string& path, int rows) {
  WriteArrow(path, rows, [](const auto& out, const auto& schema) {
    return arrow::ipc::MakeFileWriter(out, schema);
  });
}

void WriteArrowStream(const std::string& path, int rows) {
  WriteArrow(path, rows, [](const auto& out, const auto& schema) {
    return arrow::ipc::MakeStreamWriter(out, schema);
  });
}

void WriteCsv(const std::string& path, int rows) {
  std::ofstream out(path);
  out << "id,name,amount\n";
  for (int id = 1; id <= rows; ++id) {
    out << fmt::format("{},{},{}.25\n", id, id % 7 != 0 ? fmt::format("\"row {}\"", id) : "", id);
  }
}

void WriteJsonLines(const std::string& path, int rows) {
  std::ofstream out(path);
  for (int id = 1; id <= rows; ++id) {
    const std::string name =
        id % 7 != 0 ? fmt::format("\"row {}\"", id) : id % 2 == 0 ? "null" : "";
    out << fmt::format("{{\"id\": {}, {}\"amount\": {}.25}}\n", id,
                       name.empty() ? "" : "\"name\": " + name + ", ", id);
  }
}

class FileSpecimen final : public Specimen {
 public:
  using Write = void (*)(const std::string& path, int rows);
  FileSpecimen(std::string ending, Write write) : ending_(std::move(ending)), write_(write) {}

  std::unique_ptr<source::SourceRelation> Rows(int rows) override {
    const std::string path = Path(fmt::format("rows_{}", ++made_));
    write_(path, rows);
    return source::OpenFileRelation({path});
  }
  std::unique_ptr<source::SourceRelation> Missing() override {
    return source::OpenFileRelation({Path("missing-*")});
  }
  // Bytes in the middle are lost.
  std::unique_ptr<source::SourceRelation> Broken() override {
    const std::string path = Path("broken");
    write_(path, kBrokenRows);
    const auto size = std::filesystem::file_size(path);
    if (ending_ == ".arrows" || ending_ == ".arrow") {
      std::filesystem::resize_file(path, size * 3 / 4);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(size * 3 / 4));
      file << std::string(200, '\xff');
    }
    return source::OpenFileRelation({path});
  }
  std::vector<std::string> Facts() const override {
    return {"file", "size", "modified_at", "sha256"};
  }

 private:
  std::string Path(const std::string& name) const {
    return (folder_.path() / (name + ending_)).string();
  }

  TemporaryFolder folder_;
  std::string ending_;
  Write write_;
  int made_ = 0;
};

SpecimenKind Kind(const std::string& name, const std::string& ending, FileSpecimen::Write write) {
  return {name, [ending, write] { return std::make_unique<FileSpecimen>(ending, write); }};
}

}  // namespace

std::vector<SpecimenKind> FileSpecimens() {
  return {Kind("Parquet", ".parquet", WriteParquet), Kind("Csv", ".csv", WriteCsv),
          Kind("JsonLines", ".ndjson", WriteJsonLines), Kind("ArrowFile", ".arrow", WriteArrowFile),
          Kind("ArrowStream", ".arrows", WriteArrowStream)};
}

}  // namespace tidemark::tests
