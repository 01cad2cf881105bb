#include "source/postgres/preflight_server.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/identifier.h"
#include "base/log.h"

namespace tidemark::source {

namespace {

constexpr int kOldestServer = 140000;

constexpr const char* kFacts = R"sql(
SELECT d.datname, pg_catalog.current_setting('server_version'),
       pg_catalog.pg_encoding_to_char(d.encoding),
       coalesce(pg_catalog.to_jsonb(d) ->> 'datlocprovider', 'c'), d.datcollate, d.datctype,
       coalesce(pg_catalog.to_jsonb(d) ->> 'datlocale', pg_catalog.to_jsonb(d) ->> 'daticulocale',
                ''),
       pg_catalog.pg_is_in_recovery()
FROM pg_catalog.pg_database d
WHERE d.datname = pg_catalog.current_database()
)sql";

constexpr const char* kMayReadControl = R"sql(
SELECT pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')
       AND pg_catalog.has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE')
)sql";

constexpr const char* kControl = R"sql(
SELECT s.system_identifier, c.timeline_id
FROM pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c
)sql";

uint64_t Unsigned(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Both answers begin with system identifier and timeline.
void TakeIdentity(const pg::Result& row, ServerFacts& server) {
  server.system_identifier = Unsigned(row.text(0, 0));
  server.timeline = static_cast<uint32_t>(row.int64(0, 1));
}

}  // namespace

ServerFacts LoadServerFacts(pg::Connection& source, pg::Connection* replication) {
  ServerFacts server;
  const auto row = source.Execute(kFacts);
  server.database = row.str(0, 0);
  server.version = row.str(0, 1);
  server.version_number = source.server_version();
  server.encoding = row.str(0, 2);
  server.locale_provider = row.str(0, 3);
  server.collate = row.str(0, 4);
  server.ctype = row.str(0, 5);
  server.locale = row.str(0, 6);
  server.in_recovery = row.boolean(0, 7);
  if (replication != nullptr) {
    TakeIdentity(replication->Execute("IDENTIFY_SYSTEM"), server);
  } else if (source.Value(kMayReadControl) == "t") {
    TakeIdentity(source.Execute(kControl), server);
  }
  return server;
}

namespace {

constexpr const char* kSettings = R"sql(
SELECT pg_catalog.current_setting('wal_level'),
       pg_catalog.current_setting('max_replication_slots')::int
         - (SELECT count(*) FROM pg_catalog.pg_replication_slots),
       pg_catalog.current_setting('max_wal_senders')::int
         - (SELECT count(*) FROM pg_catalog.pg_stat_replication)
)sql";

void CheckSettings(pg::Connection& source, const PreflightOptions& options,
                   PreflightReport& report) {
  const auto row = source.Execute(kSettings);
  if (row.text(0, 0) != "logical") {
    report.problems.push_back({Severity::kRefusesAll, "",
                               fmt::format("wal_level is {}, not logical", row.text(0, 0)),
                               "ALTER SYSTEM SET wal_level = logical; then restart the server",
                               base::kNotInPrerequisiteState});
  }
  if (!report.slot && row.int64(0, 1) < 1) {
    report.problems.push_back({Severity::kRefusesAll, "", "all replication slots are in use",
                               "raise max_replication_slots and restart, or drop an unused slot",
                               kConfigurationLimitExceeded});
  } else if (row.int64(0, 1) < (report.slot ? 1 : 2)) {
    report.problems.push_back(
        {Severity::kNote, "",
         "no replication slot is free beside the mirror's own: tables added later cannot be "
         "copied, and verify cannot run",
         "raise max_replication_slots and restart", kConfigurationLimitExceeded});
  }
  if (options.replication == nullptr && row.int64(0, 2) < 1) {
    report.problems.push_back({Severity::kRefusesAll, "", "all WAL sender processes are in use",
                               "raise max_wal_senders and restart", base::kTooManyConnections});
  }
}

constexpr const char* kReplicationPrivilege = R"sql(
SELECT r.rolname,
       r.rolsuper OR r.rolreplication
       OR EXISTS (SELECT FROM pg_catalog.pg_roles m
                  WHERE m.rolname IN ('rds_replication', 'rds_superuser')
                    AND pg_catalog.pg_has_role(m.oid, 'MEMBER'))
FROM pg_catalog.pg_roles r
WHERE r.rolname = current_user
)sql";

void CheckReplicationPrivilege(pg::Connection& source, const PreflightOptions& options,
                               PreflightReport& report) {
  if (options.replication != nullptr) return;  // it could not have been opened without
  const auto row = source.Execute(kReplicationPrivilege);
  if (row.rows() == 1 && row.boolean(0, 1)) return;
  const std::string role = row.rows() == 1 ? row.str(0, 0) : "?";
  report.problems.push_back(
      {Severity::kRefusesAll, "", fmt::format("role \"{}\" may not use replication", role),
       fmt::format("ALTER ROLE {} REPLICATION (on Amazon RDS: GRANT rds_replication TO …)",
                   base::QuoteIdentifier(role)),
       base::kInsufficientPrivilege});
}

void CheckSlot(const PreflightOptions& options, PreflightReport& report) {
  if (!report.slot) return;
  const SlotState& slot = *report.slot;
  if (slot.plugin != "pgoutput" || slot.database != report.server.database) {
    report.problems.push_back(
        {Severity::kRefusesAll, "",
         fmt::format("replication slot \"{}\" is not ours: plugin \"{}\", database \"{}\"",
                     options.slot, slot.plugin, slot.database),
         "choose another slot name, or drop that slot", base::kDuplicateObject});
  } else if (slot.lost()) {
    report.problems.push_back(
        {Severity::kNote, "",
         fmt::format("replication slot \"{}\" was invalidated: changes are missing", options.slot),
         "every table is captured again as a whole; raise max_slot_wal_keep_size",
         base::kNotInPrerequisiteState});
  } else if (slot.active_pid) {
    report.problems.push_back(
        {Severity::kNote, "",
         fmt::format("replication slot \"{}\" is in use by pid {}", options.slot, *slot.active_pid),
         "a second mirror waits until the first has ended", base::kObjectInUse});
  }
}

constexpr const char* kFeedback = R"sql(
SELECT pg_catalog.current_setting('hot_standby_feedback')
)sql";

constexpr const char* kStoreEncoding = R"sql(
SELECT pg_catalog.current_setting('server_encoding')
)sql";

void CheckEncoding(const PreflightOptions& options, PreflightReport& report) {
  if (report.server.encoding == "SQL_ASCII") {
    report.problems.push_back(
        {Severity::kNote, "",
         "the source's encoding is SQL_ASCII: text that is not UTF-8 stops the mirror, unless "
         "encoding_errors is replace",
         "values that cannot be decoded are reported by table, key and column",
         base::SqlState("22021")});
  }
  if (options.store == nullptr) return;
  const std::string store = options.store->Value(kStoreEncoding);
  if (store == "UTF8" || store == report.server.encoding) return;
  report.problems.push_back(
      {Severity::kNote, "",
       fmt::format("the store's encoding is {}: it cannot hold every character of {}", store,
                   report.server.encoding),
       "use a store whose encoding is UTF8", base::SqlState("22P05")});
}

}  // namespace

void CheckServer(pg::Connection& source, const PreflightOptions& options, PreflightReport& report) {
  if (report.server.version_number < kOldestServer) {
    report.problems.push_back({Severity::kRefusesAll, "",
                               fmt::format("PostgreSQL {} is too old", report.server.version),
                               "use PostgreSQL 14 or newer", base::kFeatureNotSupported});
  }
  if (report.server.in_recovery) {
    const bool can_decode = report.server.version_number >= 160000;
    report.problems.push_back(
        {can_decode ? Severity::kNote : Severity::kRefusesAll, "",
         can_decode ? "the source is a standby: a slot waits until its primary logs which "
                      "transactions run there"
                    : "the source is a standby, which cannot decode before PostgreSQL 16",
         can_decode ? "SELECT pg_log_standby_snapshot() on the primary, while the mirror starts"
                    : "connect to the primary",
         base::kNotInPrerequisiteState});
    if (can_decode && source.Value(kFeedback) == "off") {
      report.problems.push_back(
          {Severity::kNote, "",
           "hot_standby_feedback is off: the slot is lost once the primary has vacuumed rows of "
           "its catalog that the slot still needs",
           "ALTER SYSTEM SET hot_standby_feedback = on, on the standby",
           base::kNotInPrerequisiteState});
    }
  }
  CheckSettings(source, options, report);
  CheckReplicationPrivilege(source, options, report);
  CheckSlot(options, report);
  CheckEncoding(options, report);
}

}  // namespace tidemark::source
