#include "source/postgres/read_position.h"

#include "source/postgres/preflight_server.h"

namespace tidemark::source {

namespace {

constexpr const char* kMoment = R"sql(
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
            ELSE pg_catalog.pg_current_wal_lsn() END,
       pg_catalog.pg_current_snapshot()
)sql";

}  // namespace

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
