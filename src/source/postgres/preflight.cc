#include "source/postgres/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "source/postgres/preflight_publication.h"
#include "source/postgres/preflight_server.h"
#include "source/postgres/preflight_table.h"

namespace tidemark::source {

bool PreflightReport::Refused() const {
  return std::any_of(problems.begin(), problems.end(),
                     [](const Problem& p) { return p.severity == Severity::kRefusesAll; });
}

PreflightReport Preflight(pg::Connection& source, const PreflightOptions& options) {
  PreflightReport report;
  const pg::Transaction transaction(source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  report.server = LoadServerFacts(source, options.replication);
  report.slot = InspectSlot(source, options.slot);
  CheckServer(source, options, report);
  report.publication = LoadPublication(source, options.publication);
  CheckPublication(source, options, report);
  report.tables = LoadCandidates(source, options, report);
  RefuseUnfitTables(source, options, report);
  ListUnmirrored(source, options, report);
  std::stable_sort(report.problems.begin(), report.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.severity < b.severity; });
  return report;
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
