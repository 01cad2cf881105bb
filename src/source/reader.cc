#include "source/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tidemark::source {

void Limit::Check() const {
  if (stop.stop_requested()) throw base::Error(base::kQueryCanceled, "stopped on request");
  if (deadline.passed()) {
    throw base::Error(base::kQueryCanceled, "the source did not answer in time");
  }
}

std::string Position::Find(const std::string& name) const {
  for (const Fact& fact : facts) {
    if (fact.name == name) return fact.value;
  }
  return "";
}

std::vector<Problem> CheckColumns(const std::string& relation, const RelationShape& shape,
                                  const Declaration& declaration) {
  std::vector<Problem> problems;
  const auto expect = [&](const std::string& name, const char* what) {
    const bool exists = std::any_of(shape.columns.begin(), shape.columns.end(),
                                    [&](const auto& c) { return c.column.name == name; });
    if (exists) return;
    problems.push_back({Severity::kRefusesTable, relation,
                        fmt::format("{} column \"{}\" does not exist", what, name),
                        "Declare a column that the relation has.", base::kUndefinedColumn});
  };
  for (const std::string& name : declaration.key) expect(name, "key");
  if (!declaration.cursor.empty()) expect(declaration.cursor, "cursor");
  return problems;
}

void RefuseColumns(const std::string& relation, const std::vector<std::string>& reasons) {
  if (reasons.empty()) return;
  throw base::Error(base::kFeatureNotSupported,
                    fmt::format("cannot read {}: {}", relation, fmt::join(reasons, "; ")));
}

}  // namespace tidemark::source
