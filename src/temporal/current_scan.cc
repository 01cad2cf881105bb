#include "temporal/current_scan.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "pg/copy.h"
#include "temporal/store.h"
#include "wire/bytes.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kScanMax{24};
constexpr size_t kRowsPerBlock = 4096;
constexpr size_t kBlocksAhead = 16;
// A ctid is sent as int32 block and int16 line; the row's own field count and this one's length are
// before it.
constexpr size_t kPlaceAt = sizeof(int16_t) + sizeof(int32_t);
constexpr size_t kPlaceBytes = sizeof(int32_t) + sizeof(int16_t);

std::string ScanSql(const Dataset& dataset, const std::vector<DatasetColumn>& columns) {
  std::string list = "c.ctid";
  for (const auto& column : columns) list += ", c." + base::QuoteIdentifier(column.name);
  return fmt::format("COPY (SELECT {} FROM ONLY {} c) TO STDOUT (FORMAT binary)", list,
                     dataset.Current());
}

}  // namespace

pg::Oid CurrentFile(pg::Connection& store, const Dataset& dataset) {
  return static_cast<pg::Oid>(std::stoul(
      store.Value("SELECT pg_catalog.pg_relation_filenode($1::regclass)", {dataset.Current()})));
}

CurrentScan::CurrentScan(const std::string& store_dsn, const Dataset& dataset,
                         const std::vector<DatasetColumn>& columns, const RowDigester& digester,
                         std::stop_token stop)
    : digester_(&digester),
      rows_(kBlocksAhead),
      passed_on_(stop, [this] { stop_.request_stop(); }) {
  auto store = OpenStore(store_dsn, base::Deadline::After(kConnectMax), stop);
  store.SetLimits(kScanMax, stop_.get_token());
  // The lock is held until the scan has ended: file and rows belong together. In the order of
  // places.
  store.Execute(
      "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; "
      "SET jit = off; BEGIN");
  store.Execute(fmt::format("LOCK TABLE ONLY {} IN ACCESS SHARE MODE", dataset.Current()));
  file_ = CurrentFile(store, dataset);
  thread_ = std::jthread([this, sql = ScanSql(dataset, columns), store = std::move(store),
                          own = stop_.get_token()]() mutable { Run(store, sql, own); });
}

CurrentScan::~CurrentScan() { stop_.request_stop(); }

std::optional<CurrentScan::Rows> CurrentScan::Next(const std::stop_token& stop) {
  return rows_.Take(base::Deadline::After(kScanMax), stop);
}

void CurrentScan::Run(pg::Connection& store, const std::string& sql, const std::stop_token& stop) {
  try {
    pg::CopyOut copy(store, sql);
    wire::CopyBinaryReader reader;
    Rows rows;
    RowPlace last = 0;
    while (const auto chunk = copy.Next()) {
      reader.Feed(*chunk);
      while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
        const std::string_view row = reader.row_bytes();
        const char* const at = row.data() + kPlaceAt;
        const RowPlace place = PlaceOf(wire::LoadBigEndian<uint32_t>(at),
                                       wire::LoadBigEndian<uint16_t>(at + sizeof(int32_t)));
        if (place <= last) throw Error(base::kDataCorrupted, "current rows out of their order");
        last = place;
        rows.push_back({digester_->Of(row.substr(kPlaceAt + kPlaceBytes)), place});
      }
      if (rows.size() < kRowsPerBlock) continue;
      if (!rows_.Give(std::exchange(rows, {}), stop) || stop.stop_requested()) return;
    }
    reader.ExpectEnd();
    if (!rows.empty() && !rows_.Give(std::move(rows), stop)) return;
    rows_.End();
  } catch (...) {
    rows_.End(std::current_exception());
  }
}

}  // namespace tidemark::temporal
