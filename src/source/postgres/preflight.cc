#include "source/postgres/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/identifier.h"
#include "source/postgres/preflight_publication.h"
#include "source/postgres/preflight_server.h"
#include "source/postgres/preflight_store.h"
#include "source/postgres/preflight_table.h"
#include "source/postgres/raw_text.h"

namespace tidemark::source {

bool PreflightReport::Refused() const {
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& p) { return p.severity == Severity::kRefusesAll; });
}

namespace {

void KeepOnly(const PreflightOptions& options, PreflightReport& report) {
  std::erase_if(report.tables,
                [&](const PublishedTable& table) { return table.relation.name != *options.only; });
  if (!report.tables.empty() || report.Refused()) return;
  const std::string name = options.only->Display();
  if (report.publication.exists) {
    report.problems.push_back(
        {Severity::kRefusesAll, name,
         fmt::format("publication \"{}\" does not publish it", options.publication),
         fmt::format("ALTER PUBLICATION {} ADD TABLE {}", base::QuoteIdentifier(options.publication),
                     options.only->Quoted()),
         base::kUndefinedTable});
  } else {
    report.problems.push_back({Severity::kRefusesAll, name, "there is no such table to publish",
                               "Name an ordinary or a partitioned table, as schema.table.",
                               base::kUndefinedTable});
  }
}

// Names of a source may be in any encoding; what is said of them is UTF-8.
void MakeReadable(std::vector<Problem>& problems) {
  for (auto& problem : problems) {
    problem.table = Readable(std::move(problem.table));
    problem.what = Readable(std::move(problem.what));
    problem.fix = Readable(std::move(problem.fix));
  }
}

// Without its only table nothing is left.
void RefuseAllWithIt(PreflightReport& report) {
  if (!report.tables.empty()) return;
  for (auto& problem : report.problems) {
    if (problem.severity == Severity::kRefusesTable) problem.severity = Severity::kRefusesAll;
  }
}

}  // namespace

PreflightReport Preflight(pg::Connection& source, const PreflightOptions& options) {
  PreflightReport report;
  const pg::Transaction transaction(source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  report.server = LoadServerFacts(source, options.replication);
  report.slot = InspectSlot(source, options.slot);
  CheckServer(source, options, report);
  report.publication = LoadPublication(source, options.publication);
  CheckPublication(source, options, report);
  report.tables = LoadCandidates(source, options, report);
  if (options.only) KeepOnly(options, report);
  RefuseUnfitTables(source, options, report);
  NoteMissingHeirs(source, report);
  CheckStoreLocks(source, options, report);
  if (!options.only) ListUnmirrored(source, options, report);
  if (options.only) RefuseAllWithIt(report);
  MakeReadable(report.problems);
  std::stable_sort(report.problems.begin(), report.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.severity < b.severity; });
  return report;
}

std::optional<PublishedTable> LoadPublishedTable(pg::Connection& source,
                                                 const PreflightOptions& options, pg::Oid table,
                                                 std::vector<Problem>& problems) {
  PreflightReport report;
  report.server = LoadServerFacts(source, nullptr);
  report.publication = LoadPublication(source, options.publication);
  report.tables = LoadCandidates(source, options, report);
  std::erase_if(report.tables,
                [&](const PublishedTable& each) { return each.relation.oid != table; });
  RefuseUnfitTables(source, options, report);
  problems = std::move(report.problems);
  MakeReadable(problems);
  if (report.tables.empty()) return std::nullopt;
  MakeCommentsReadable(report.tables.front().relation);
  return std::move(report.tables.front());
}

namespace {

using Line = std::array<std::string, 4>;

std::string_view SeverityWord(Severity severity) {
  switch (severity) {
    case Severity::kRefusesAll:
      return "refused";
    case Severity::kRefusesTable:
      return "left out";
    case Severity::kNote:
      return "note";
  }
  return "";
}

// Columns on a terminal, taking every code point as one.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string FormatProblems(const std::vector<Problem>& problems) {
  if (problems.empty()) return "";
  std::vector<Line> lines = {{"severity", "table", "problem", "fix"}};
  for (const auto& p : problems) {
    lines.push_back({std::string(SeverityWord(p.severity)), p.table, p.what, p.fix});
  }
  std::array<size_t, 4> widths{};
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      row += line[i] + std::string(widths[i] - Width(line[i]) + 2, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace tidemark::source
