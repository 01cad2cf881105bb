#include "capture/column_match.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace tidemark::capture {

namespace {

constexpr int kImpossible = std::numeric_limits<int>::min() / 2;

// One that may stand behind a column of the message.
struct Candidate {
  int number;
  bool required;  // still there, and known before the message: it is in it
  std::string known_name, catalog_name;
  uint32_t known_type = 0, catalog_type = 0;
};

int Likeness(const MessageColumn& column, const Candidate& candidate) {
  const bool same_name =
      column.name == candidate.known_name || column.name == candidate.catalog_name;
  const bool same_type =
      column.type == candidate.known_type || column.type == candidate.catalog_type;
  return (same_name ? 4 : 0) + (same_type ? 2 : 0) + 1;
}

std::vector<Candidate> CandidatesOf(const std::vector<KnownColumn>& known,
                                    const std::vector<CatalogColumn>& catalog) {
  std::vector<Candidate> candidates;
  for (const auto& column : known) {
    candidates.push_back({.number = column.number,
                          .required = false,
                          .known_name = column.name,
                          .catalog_name = column.name,
                          .known_type = column.type,
                          .catalog_type = column.type});
  }
  for (const auto& column : catalog) {
    const auto same = std::ranges::find(candidates, column.number, &Candidate::number);
    if (same != candidates.end()) {
      same->required = !column.name.empty();
      if (same->required) {
        same->catalog_name = column.name;
        same->catalog_type = column.type;
      }
    } else if (known.empty() || column.number > known.back().number) {
      candidates.push_back({.number = column.number,
                            .required = false,
                            .known_name = column.name,
                            .catalog_name = column.name,
                            .known_type = column.type,
                            .catalog_type = column.type});
    }
  }
  return candidates;
}

}  // namespace

std::vector<int> MatchColumns(const std::vector<MessageColumn>& message,
                              const std::vector<KnownColumn>& known,
                              const std::vector<CatalogColumn>& catalog) {
  const auto candidates = CandidatesOf(known, catalog);
  const size_t m = message.size(), n = candidates.size();
  // best[i][j]: how alike the first i columns and some of the first j candidates are, in order.
  std::vector<std::vector<int>> best(m + 1, std::vector<int>(n + 1, kImpossible));
  best[0][0] = 0;
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i <= m; ++i) {
      if (!candidates[j].required) best[i][j + 1] = std::max(best[i][j + 1], best[i][j]);
      if (i < m && best[i][j] > kImpossible) {
        best[i + 1][j + 1] =
            std::max(best[i + 1][j + 1], best[i][j] + Likeness(message[i], candidates[j]));
      }
    }
  }
  if (best[m][n] <= kImpossible) {
    throw base::Error(base::kNotInPrerequisiteState,
                      "the columns that the source announced are not those of its catalog")
        .Hint("Run \"tidemark resync\" for the table.");
  }
  std::vector<int> numbers(m);
  for (size_t i = m, j = n; j > 0; --j) {
    const bool passed = !candidates[j - 1].required && best[i][j] == best[i][j - 1];
    if (passed) continue;
    numbers[i - 1] = candidates[j - 1].number;
    --i;
  }
  return numbers;
}

}  // namespace tidemark::capture
