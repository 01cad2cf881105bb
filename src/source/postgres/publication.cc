#include "source/postgres/publication.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/identifier.h"

namespace tidemark::source {

namespace {

constexpr const char* kCreate = R"sql(
CREATE PUBLICATION {}{} WITH (publish_via_partition_root = true)
)sql";

std::string TableList(std::span<const pg::Relation> relations) {
  if (relations.empty()) return "";
  std::vector<std::string> tables;
  for (const auto& relation : relations) tables.push_back("ONLY " + relation.name.Quoted());
  return fmt::format(" FOR TABLE {}", fmt::join(tables, ", "));
}

}  // namespace

void CreatePublication(pg::Connection& connection, const std::string& name,
                       std::span<const pg::Relation> relations) {
  for (const auto& relation : relations) {
    if (relation.CanPublishUpdates()) continue;
    throw base::Error(base::kNotInPrerequisiteState,
                      fmt::format("cannot publish table {}: it has no usable replica identity",
                                  relation.name.Display()))
        .Hint("Add a primary key, or set REPLICA IDENTITY FULL.");
  }
  connection.Execute(fmt::format(kCreate, base::QuoteIdentifier(name), TableList(relations)));
}

}  // namespace tidemark::source
