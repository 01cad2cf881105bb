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

/// What a file's name says of the session: pinned_*: pinned to tx 42; capped_*: by a snapshot token
/// whose basis reaches tx 40; unpinned_*: it may be, but is not.
struct Session {
  bool pins, pinned, capped;
  explicit Session(const std::string& stem)
      : pins(stem.starts_with("pinned") || stem.starts_with("capped") ||
             stem.starts_with("unpinned")),
        pinned(pins && !stem.starts_with("unpinned")),
        capped(stem.starts_with("capped")) {}
};

Relation::Kind KindOf(const std::string& name) {
  using Kind = Relation::Kind;
  for (const auto& [prefix, kind] : std::initializer_list<std::pair<const char*, Kind>>{
           {"plain_", Kind::kNotVersioned},
           {"view_", Kind::kView},
           {"materialized_", Kind::kMaterialized},
           {"history_", Kind::kHistory},
           {"plane_", Kind::kPlane},
           {"missing_", Kind::kMissing}}) {
    if (name.starts_with(prefix)) return kind;
  }
  return Kind::kVersioned;
}

template <typename R>
R About(const base::QualifiedName& name, const Session& session) {
  R relation;
  relation.name = name;
  relation.kind = KindOf(name.name);
  relation.parent = name.name.starts_with("parent_");
  if (relation.kind == Relation::Kind::kHistory) relation.name.schema += "_history";
  if (session.pinned) relation.pinned_tx = session.capped ? "40" : "42";
  if (session.capped) relation.cap_tx = "40";
  return relation;
}

Resolution Resolve(const Statement::Reference& reference, const Session& session) {
  const auto parts = PartsOf(reference.name);
  auto found = About<Resolution>(
      {parts.size() > 1 ? parts[parts.size() - 2] : "public", parts.back()}, session);
  for (const std::string& function : reference.functions) {
    if (function == "\"clock_timestamp\"" || function == "\"random\"") {
      found.volatile_function = function;
      break;
    }
  }
  return found;
}

/// The views that there are, and what they read.
std::vector<ViewRelation> Views(const Session& session) {
  std::vector<ViewRelation> relations;
  const auto add = [&](const char* name, const char* definition, const char* refused = "") {
    auto relation = About<ViewRelation>({"public", name}, session);
    relation.definition = definition;
    relation.refused_function = refused;
    relations.push_back(std::move(relation));
  };
  add("view_sums",
      " SELECT c.name,\n    sum(orders.total) AS total\n   FROM public.customers c\n"
      "     JOIN ONLY public.orders ON orders.customer = c.id\n  GROUP BY c.name;");
  add("view_nested",
      " WITH orders AS (SELECT view_sums.name FROM public.view_sums)\n"
      " SELECT o.name, p.x FROM orders o, public.plain_t p, pg_class k;");
  add("view_stale", " SELECT m.a FROM public.materialized_m m;");
  add("view_families", " SELECT a.id FROM ONLY public.parent_p a JOIN public.parent_p b ON true;");
  add("view_calling", " SELECT public.f() AS f FROM public.orders;", "public.f()");
  for (const char* name : {"customers", "orders", "plain_t", "materialized_m", "parent_p"}) {
    add(name, "");
  }
  return relations;
}

std::string Outcome(const std::string& sql, const Session& session) {
  try {
    const auto statement = Statement::Analyze(sql, {.executes = false, .pins = session.pins});
    if (!statement) return "(passes unchanged)";
    std::vector<Resolution> resolutions;
    for (const auto& reference : statement->references()) {
      resolutions.push_back(Resolve(reference, session));
    }
    const auto views = Views(session);
    const bool refused = std::ranges::count(statement->calls(), "\"may_read\"") > 0;
    const std::string rewritten = statement
                                      ->Render({.resolutions = resolutions,
                                                .view_relations = views,
                                                .pinned = session.pinned,
                                                .refused_function = refused ? "may_read" : "",
                                                .settles_inside = session.pins})
                                      .sql;
    return rewritten == sql ? "(passes unchanged)" : rewritten;
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
      const std::string outcome = Outcome(c.sql, Session(entry.path().stem()));
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
  EXPECT_GE(cases, 200u);
}

/// A statement PostgreSQL accepts as it is must never be touched outside pinned sessions, but for
/// COPY of a table and ONLY.
TEST(Golden, ACaseThatPassesUnchangedHasNoClauseForPostgres) {
  for (const auto& entry :
       std::filesystem::directory_iterator(TIDEMARK_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() != ".test") continue;
    for (const GoldenCase& c : Load(entry.path()).cases) {
      if (!SyntaxErrorOf(c.sql).empty() || entry.path().stem() == "copy" ||
          entry.path().stem() == "only" || entry.path().stem() == "parents" ||
          Session(entry.path().stem()).pins) {
        continue;
      }
      EXPECT_EQ(c.expected, "(passes unchanged)") << c.sql;
    }
  }
}

}  // namespace
}  // namespace tidemark::rewrite
