// Runs tests/golden/*.test; their README.md says how they are written. With TIDEMARK_WRITE_GOLDEN
// set, writes what came out into the files instead of comparing: for review as a diff.
#include <gtest/gtest.h>
#include <pg_query.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "rewrite/statement.h"

namespace tidemark::rewrite {
namespace {

struct GoldenCase {
  std::string title, sql, expected;
};

struct GoldenFile {
  std::filesystem::path path;
  std::string preface;
  std::vector<GoldenCase> cases;
};

GoldenFile Load(const std::filesystem::path& path) {
  GoldenFile file{path, {}, {}};
  std::ifstream in(path);
  std::string line;
  bool blank = true, in_expected = false;
  while (std::getline(in, line)) {
    if (blank && line.starts_with("-- ")) {
      file.cases.push_back({line.substr(3), {}, {}});
      in_expected = false;
    } else if (file.cases.empty()) {
      file.preface += line + '\n';
    } else if (line == "----") {
      in_expected = true;
    } else {
      (in_expected ? file.cases.back().expected : file.cases.back().sql) += line + '\n';
    }
    blank = line.empty();
  }
  for (GoldenCase& c : file.cases) {
    for (std::string* text : {&c.sql, &c.expected}) {
      while (text->ends_with('\n')) text->pop_back();
    }
  }
  return file;
}

void Store(const GoldenFile& file) {
  std::ofstream out(file.path);
  out << file.preface;
  for (size_t i = 0; i < file.cases.size(); ++i) {
    const GoldenCase& c = file.cases[i];
    out << (i == 0 ? "" : "\n") << "-- " << c.title << '\n'
        << c.sql << "\n----\n"
        << c.expected << '\n';
  }
}

/// The parts of a name that to_regclass() would read.
std::vector<std::string> PartsOf(const std::string& name) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '"') {
      if (quoted && i + 1 < name.size() && name[i + 1] == '"') {
        parts.back() += name[++i];
      } else {
        quoted = !quoted;
      }
    } else if (c == '.' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += quoted || c < 'A' || c > 'Z' ? c : static_cast<char>(c + ('a' - 'A'));
    }
  }
  for (std::string& part : parts) part = part.substr(0, 63);
  return parts;
}

Resolution Resolve(const Statement::Reference& reference) {
  const auto parts = PartsOf(reference.name);
  Resolution found;
  found.name = {parts.size() > 1 ? parts[parts.size() - 2] : "public", parts.back()};
  found.kind = parts.back().starts_with("plain_")     ? Resolution::Kind::kNotVersioned
               : parts.back().starts_with("view_")    ? Resolution::Kind::kView
               : parts.back().starts_with("missing_") ? Resolution::Kind::kMissing
                                                      : Resolution::Kind::kVersioned;
  for (const std::string& function : reference.functions) {
    if (function == "\"clock_timestamp\"" || function == "\"random\"") {
      found.volatile_function = function;
      break;
    }
  }
  return found;
}

std::string Outcome(const std::string& sql) {
  try {
    const auto statement = Statement::Analyze(sql);
    if (!statement) return "(passes unchanged)";
    std::vector<Resolution> resolutions;
    for (const auto& reference : statement->references()) resolutions.push_back(Resolve(reference));
    return statement->Render(resolutions).sql;
  } catch (const base::Error& error) {
    return "ERROR " + error.state().str() + ": " + error.message() + " @" +
           std::to_string(error.position().value_or(0));
  }
}

/// What PostgreSQL's grammar says of `sql`; empty when it accepts it.
std::string SyntaxErrorOf(const std::string& sql) {
  PgQueryParseResult result = pg_query_parse(sql.c_str());
  const std::string message = result.error ? result.error->message : "";
  pg_query_free_parse_result(result);
  return message;
}

TEST(Golden, EveryCaseGivesWhatItsFileSays) {
  size_t cases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TIDEMARK_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() != ".test") continue;
    GoldenFile file = Load(entry.path());
    for (GoldenCase& c : file.cases) {
      SCOPED_TRACE(entry.path().filename().string() + ": " + c.title + "\n" + c.sql);
      const std::string outcome = Outcome(c.sql);
      ++cases;
      if (std::getenv("TIDEMARK_WRITE_GOLDEN") != nullptr) {
        c.expected = outcome;
      } else {
        EXPECT_EQ(outcome, c.expected);
      }
      if (!outcome.starts_with("ERROR ") && !outcome.starts_with("(passes")) {
        EXPECT_EQ(SyntaxErrorOf(outcome), "") << outcome;
      }
    }
    if (std::getenv("TIDEMARK_WRITE_GOLDEN") != nullptr) Store(file);
  }
  EXPECT_GE(cases, 150u);
}

/// A statement PostgreSQL accepts as it is must never be touched, COPY of a table apart.
TEST(Golden, ACaseThatPassesUnchangedHasNoClauseForPostgres) {
  for (const auto& entry :
       std::filesystem::directory_iterator(TIDEMARK_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() != ".test") continue;
    for (const GoldenCase& c : Load(entry.path()).cases) {
      if (!SyntaxErrorOf(c.sql).empty() || entry.path().stem() == "copy") continue;
      EXPECT_EQ(c.expected, "(passes unchanged)") << c.sql;
    }
  }
}

}  // namespace
}  // namespace tidemark::rewrite
