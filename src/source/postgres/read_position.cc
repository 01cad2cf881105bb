#include "source/postgres/read_position.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "source/postgres/preflight_server.h"

namespace tidemark::source {

namespace {

constexpr const char* kMoment = R"sql(
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
            ELSE pg_catalog.pg_current_wal_lsn() END,
       pg_catalog.pg_current_snapshot()
)sql";

// At the beginning of a page the place to insert is after the page's header (24 bytes, 40 in a new
// segment), which nothing reaches before the next record.
constexpr const char* kEnds = R"sql(
SELECT CASE WHEN e.lsn_offset IN (24, 40) THEN e.lsn - e.lsn_offset ELSE e.lsn END, e.flushed,
       (SELECT g.setting FROM pg_catalog.pg_settings g WHERE g.name = 'wal_writer_delay')
FROM (SELECT c.lsn, c.flushed, (c.lsn - '0/0')
               % pg_catalog.current_setting('wal_block_size')::numeric AS lsn_offset
      FROM (SELECT CASE WHEN r.recovers THEN pg_catalog.pg_last_wal_replay_lsn()
                        ELSE pg_catalog.pg_current_wal_insert_lsn() END AS lsn,
                   CASE WHEN r.recovers THEN pg_catalog.pg_last_wal_replay_lsn()
                        ELSE pg_catalog.pg_current_wal_flush_lsn() END AS flushed
            FROM (SELECT pg_catalog.pg_is_in_recovery() AS recovers) AS r) AS c) AS e
)sql";

constexpr int kWriterRounds = 3;
// For a WAL writer that comes late.
constexpr std::chrono::milliseconds kWriterSlack{400}, kPollInterval{20};

}  // namespace

base::Lsn CurrentEnd(pg::Connection& connection) {
  const auto first = connection.Execute(kEnds);
  const auto end = base::Lsn::Parse(first.text(0, 0));
  auto flushed = base::Lsn::Parse(first.text(0, 1));
  const auto rounds = std::chrono::milliseconds(kWriterRounds * first.int64(0, 2));
  const auto deadline = base::Deadline::After(rounds + kWriterSlack);
  while (flushed < end && !deadline.passed()) {
    connection.Execute("SELECT pg_catalog.pg_sleep($1::integer / 1000.0)",
                       {std::to_string(kPollInterval.count())});
    flushed = base::Lsn::Parse(connection.Execute(kEnds).text(0, 1));
  }
  return std::min(end, flushed);
}

std::vector<Fact> LoadFacts(pg::Connection& connection, const pg::Relation& relation) {
  const ServerFacts server = LoadServerFacts(connection, nullptr);
  const auto moment = connection.Execute(kMoment);
  std::vector<Fact> facts = {{"server_version", server.version}, {"database", server.database}};
  if (server.system_identifier != 0) {
    facts.push_back({"system_identifier", std::to_string(server.system_identifier)});
    facts.push_back({"timeline", std::to_string(server.timeline)});
  }
  facts.push_back({"in_recovery", server.in_recovery ? "true" : "false"});
  facts.push_back({"lsn", moment.str(0, 0)});
  facts.push_back({"snapshot", moment.str(0, 1)});
  facts.push_back({"relation", relation.name.Display()});
  facts.push_back({"relation_oid", std::to_string(relation.oid)});
  return facts;
}

}  // namespace tidemark::source
