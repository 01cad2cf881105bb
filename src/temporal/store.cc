#include "temporal/store.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "temporal/schema_files.h"

namespace tidemark::temporal {

using base::Error;

namespace {

constexpr int kOldestServer = 150000;

// The schema version that is there, -1 when the database has no Tidemark schema.
int SchemaVersion(pg::Connection& store) {
  const auto found =
      store.Execute("SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('tidemark.store')");
  if (found.rows() == 0) return -1;
  return std::stoi(store.Value("SELECT schema_version FROM tidemark.store"));
}

}  // namespace

pg::Connection OpenStore(const std::string& dsn, base::Deadline deadline, std::stop_token stop) {
  return pg::Connection::Open(
      {.dsn = dsn,
       .application_name = "tidemark",
       .timeouts = false,
       .settings = {{"search_path", ""},
                    {"synchronous_commit", "on"},
                    {"default_transaction_read_only", "off"},
                    {"default_transaction_isolation", "read committed"},
                    {"row_security", "off"},
                    {"TimeZone", "UTC"},
                    {"DateStyle", "ISO"},
                    {"IntervalStyle", "postgres"},
                    {"extra_float_digits", "3"},
                    {"bytea_output", "hex"},
                    {"client_min_messages", "warning"}}},
      deadline, stop);
}

bool IsCurrent(pg::Connection& store) {
  return SchemaVersion(store) == static_cast<int>(SchemaFiles().size());
}

void Migrate(pg::Connection& store) {
  if (store.server_version() < kOldestServer) {
    throw Error(base::kFeatureNotSupported,
                fmt::format("the store runs PostgreSQL {}, but 15 or newer is needed",
                            store.server_version() / 10000))
        .Hint("Point store: at a newer server, or use the embedded store.");
  }
  const auto& files = SchemaFiles();
  const int newest = static_cast<int>(files.size());
  for (;;) {
    pg::Transaction tx(store);
    // Two processes that start together must not both create the schema.
    store.Execute("SELECT pg_catalog.pg_advisory_xact_lock(6071219443104215633)");
    const int version = std::max(0, SchemaVersion(store));
    if (version > newest) {
      throw Error(base::kFeatureNotSupported,
                  fmt::format("the store has schema version {}, this program knows {}", version,
                              newest))
          .Hint("Use the newer tidemark that last opened it.");
    }
    if (version == newest) return;
    spdlog::info("store: applying {}", files[static_cast<size_t>(version)].name);
    store.Execute(files[static_cast<size_t>(version)].sql);
    store.Execute("UPDATE tidemark.store SET schema_version = $1", {std::to_string(version + 1)});
    std::move(tx).Commit();
  }
}

}  // namespace tidemark::temporal
