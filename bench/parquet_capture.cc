// The first capture of a Parquet file of about a gigabyte of decoded rows, beside what the store
// itself takes: psql's COPY of the same rows into an empty table, and the primary key on it. A
// second capture of the unchanged file follows.
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>
#include <arrow/util/decimal.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "base/child_process.h"
#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/polling.h"
#include "bench/report.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::minutes kCaptureMax{30};
constexpr int64_t kRowsPerGroup = 128 * 1024;
constexpr int64_t kMegabyte = 1'000'000;

void Must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <typename T>
T Must(arrow::Result<T> result) {
  Must(result.status());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::Schema> OrderFields() {
  return arrow::schema(
      {arrow::field("id", arrow::int64(), false), arrow::field("customer", arrow::int32(), false),
       arrow::field("quantity", arrow::int16()), arrow::field("price", arrow::decimal128(12, 2)),
       arrow::field("weight", arrow::float64()), arrow::field("express", arrow::boolean()),
       arrow::field("product", arrow::utf8()), arrow::field("note", arrow::utf8()),
       arrow::field("day", arrow::date32()),
       arrow::field("placed", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"))});
}

// Orders [first, end): now and then a NULL, prices and notes that do not compress away.
std::shared_ptr<arrow::RecordBatch> Orders(int64_t first, int64_t end) {
  constexpr int64_t kPlacedFrom = 1'767'225'600'000'000;  // 2026-01-01
  constexpr int32_t kDayFrom = 20'454;
  arrow::Int64Builder id;
  arrow::Int32Builder customer;
  arrow::Int16Builder quantity;
  arrow::Decimal128Builder price(arrow::decimal128(12, 2));
  arrow::DoubleBuilder weight;
  arrow::BooleanBuilder express;
  arrow::StringBuilder product, note;
  arrow::Date32Builder day;
  arrow::TimestampBuilder placed(arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"),
                                 arrow::default_memory_pool());
  for (int64_t i = first; i < end; ++i) {
    const uint64_t mixed = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL;
    Must(id.Append(i));
    Must(customer.Append(static_cast<int32_t>(mixed % 500'000)));
    Must(quantity.Append(static_cast<int16_t>(1 + mixed % 40)));
    Must(price.Append(arrow::Decimal128(static_cast<int64_t>(mixed % 10'000'000))));
    Must(weight.Append(static_cast<double>(mixed % 100'000) / 1000));
    Must(i % 50 == 0 ? express.AppendNull() : express.Append(mixed % 3 == 0));
    Must(product.Append(fmt::format("product {:05}", mixed % 20'000)));
    Must(i % 10 == 0 ? note.AppendNull()
                     : note.Append(fmt::format("to be left with the neighbour at door {:016x}, "
                                               "please ring twice",
                                               mixed)));
    Must(day.Append(kDayFrom + static_cast<int32_t>(i / 50'000)));
    Must(placed.Append(kPlacedFrom + i * 1'234'567));
  }
  return arrow::RecordBatch::Make(
      OrderFields(), end - first,
      {Must(id.Finish()), Must(customer.Finish()), Must(quantity.Finish()), Must(price.Finish()),
       Must(weight.Finish()), Must(express.Finish()), Must(product.Finish()), Must(note.Finish()),
       Must(day.Finish()), Must(placed.Finish())});
}

struct ParquetFile {
  std::filesystem::path path;
  int64_t rows = 0, decoded_bytes = 0;
};

// Holds one row group.
ParquetFile WriteOrders(const std::filesystem::path& path, int64_t decoded_bytes) {
  ParquetFile file{.path = path};
  const auto out = Must(arrow::io::FileOutputStream::Open(path.string()));
  const auto properties =
      parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->build();
  const auto writer = Must(parquet::arrow::FileWriter::Open(
      *OrderFields(), arrow::default_memory_pool(), out, properties));
  while (file.decoded_bytes < decoded_bytes) {
    const auto batch = Orders(file.rows, file.rows + kRowsPerGroup);
    Must(writer->WriteRecordBatch(*batch));
    file.rows += batch->num_rows();
    file.decoded_bytes += Must(arrow::util::ReferencedBufferSize(*batch));
  }
  Must(writer->Close());
  Must(out->Close());
  return file;
}

struct Taken {
  double seconds = 0, process_cpu = 0, store_cpu = 0;
  int64_t peak_resident = 0;
};

class ParquetCapture {
 public:
  ParquetCapture(BoundedRun& run, const CommandLine& line, int64_t decoded_bytes)
      : line_(line),
        store_(run, line.store_settings),
        peer_(run, line.store_settings),
        config_(store_.directory() / "tidemark.yaml") {
    Say("writing the file");
    file_ = WriteOrders(store_.directory() / "orders.parquet", decoded_bytes);
    std::ofstream(config_) << fmt::format(
        "store: \"{}\"\nsources:\n  lake: {{files: \"{}\"}}\ndatasets:\n  public.orders: "
        "{{source: lake, relation: orders.parquet, strategy: snapshot, key: [id]}}\n",
        store_.Dsn(), store_.directory().string());
  }

  Taken Capture() {
    store_.Settle();
    const auto log = store_.directory() / "capture.log";
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) throw std::runtime_error("could not open " + log.string());
    Taken taken;
    taken.store_cpu = -store_.ProcessorSeconds();
    const Stopwatch watch;
    auto process = base::ChildProcess::Start(
        {.command = {line_.tidemark, "capture", "--config", config_.string()},
         .environment = {"PATH=/usr/bin:/bin"},
         .account = std::nullopt,
         .output_fd = fd,
         .dies_with_parent = true});
    ::close(fd);
    std::optional<base::ExitStatus> ended;
    PollUntil("a capture", kCaptureMax, [&] {
      taken.peak_resident = std::max(taken.peak_resident, PeakResidentBytesOf(process.pid()));
      taken.process_cpu = std::max(taken.process_cpu, ProcessorSecondsOf(process.pid()));
      ended = process.Wait(base::Deadline::After(std::chrono::milliseconds(0)));
      return ended.has_value();
    });
    taken.seconds = watch.seconds();
    taken.store_cpu += store_.ProcessorSeconds();
    if (!ended->ok()) {
      std::ifstream in(log);
      throw std::runtime_error("tidemark capture: " +
                               std::string(std::istreambuf_iterator<char>(in), {}));
    }
    return taken;
  }

  // The rows that were captured, as psql would load them.
  Taken ByPsql() {
    const auto rows = peer_.directory() / "orders.copy";
    Psql(store_, fmt::format("COPY (SELECT * FROM public.orders) TO STDOUT (FORMAT binary)"),
         "> '" + rows.string() + "'");
    auto on = peer_.Connect();
    on.SetLimits(kCaptureMax, {});
    on.Execute(
        "CREATE TABLE orders (id bigint NOT NULL, customer int, quantity smallint, price "
        "numeric(12,2), weight float8, express boolean, product text, note text, day date, "
        "placed timestamptz)");
    peer_.Settle();
    Taken taken;
    taken.store_cpu = -peer_.ProcessorSeconds();
    const Stopwatch watch;
    Psql(peer_, "COPY orders FROM STDIN (FORMAT binary)", "< '" + rows.string() + "'");
    on.Execute("ALTER TABLE orders ADD PRIMARY KEY (id)");
    taken.seconds = watch.seconds();
    taken.store_cpu += peer_.ProcessorSeconds();
    std::filesystem::remove(rows);
    return taken;
  }

  void Verify() {
    const std::string sql =
        "SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)::numeric) FROM public.orders o";
    auto store = store_.Connect();
    auto peer = peer_.Connect();
    store.SetLimits(kCaptureMax, {});
    peer.SetLimits(kCaptureMax, {});
    const auto captured = store.Value(sql);
    if (captured != peer.Value(sql) || !captured.starts_with(fmt::format("{} ", file_.rows))) {
      throw std::runtime_error("the store has other rows than the file");
    }
  }

  const ParquetFile& file() const { return file_; }

 private:
  static void Psql(const DurableCluster& on, const std::string& sql,
                   const std::string& redirection) {
    std::string output;
    const auto ended =
        base::RunToEnd({.command = {"/bin/sh", "-c",
                                    fmt::format("'{}' -Xqd '{}' -c '{}' {}",
                                                (tests::ServerBinaries() / "psql").string(),
                                                on.Dsn(), sql, redirection)},
                        .environment = {"PATH=/usr/bin:/bin"},
                        .account = std::nullopt,
                        .dies_with_parent = true},
                       &output, base::Deadline::After(kCaptureMax));
    if (!ended.ok()) throw std::runtime_error("psql: " + output);
  }

  const CommandLine& line_;
  DurableCluster store_, peer_;
  std::filesystem::path config_;
  ParquetFile file_;
};

void Measure(int argc, char** argv) {
  CommandLine line("Measures the first capture of a Parquet file beside psql's COPY of its rows.");
  int64_t megabytes = 1000;
  line.Add("--megabytes", megabytes, "of decoded rows in the file");
  line.Read(argc, argv);
  if (line.quick) megabytes = 30;
  BoundedRun run(line.limit());
  ParquetCapture capture(run, line, megabytes * kMegabyte);
  const auto& file = capture.file();
  Report report("parquet_capture", {"what", "seconds", "MB/s", "rows/s", "ratio", "cpu process",
                                    "cpu store", "peak MB"});
  report.Note("rows", {static_cast<double>(file.rows), 0});
  report.Note("decoded MB", {static_cast<double>(file.decoded_bytes) / kMegabyte, 0});
  report.Note("file MB",
              {static_cast<double>(std::filesystem::file_size(file.path)) / kMegabyte, 0});
  Say("first capture");
  const Taken first = capture.Capture();
  Say("psql COPY, then the key");
  const Taken psql = capture.ByPsql();
  Say("unchanged");
  const Taken again = capture.Capture();
  const auto add = [&](const char* what, const Taken& taken, bool process) {
    report.Add({what,
                {taken.seconds, 2},
                {static_cast<double>(file.decoded_bytes) / kMegabyte / taken.seconds, 1},
                {static_cast<double>(file.rows) / taken.seconds, 0},
                {taken.seconds / psql.seconds, 2},
                process ? Cell(taken.process_cpu, 2) : Cell(),
                {taken.store_cpu, 2},
                process ? Cell(static_cast<double>(taken.peak_resident) / kMegabyte, 0) : Cell()});
  };
  add("psql COPY and key", psql, false);
  add("first capture", first, true);
  add("unchanged", again, true);
  capture.Verify();
  report.Figure("first capture of Parquet: MB/s",
                {static_cast<double>(file.decoded_bytes) / kMegabyte / first.seconds, 1}, "100");
  report.Figure("first capture of Parquet: time / psql COPY and key",
                {first.seconds / psql.seconds, 2}, "");
  report.Publish(line.json_file);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::BoundedRun::Main([&] { tidemark::bench::Measure(argc, argv); });
}
