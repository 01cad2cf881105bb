// Random successive states of a relation through the snapshot strategy: every past state must be
// read back as it was, and every version must be what an outsider computes.
//   TIDEMARK_STATES_ROUNDS   captures, default 40
//   TIDEMARK_STATES_SEED     default 1
#include <cstdlib>
#include <random>

#include "tests/capture/capture_fixture.h"
#include "tests/capture/version_model.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;

int Setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// The identity of a column: its name and how often the name had been used before.
std::string Identity(const std::string& name, int generation) {
  return name + "#" + std::to_string(generation);
}

class RandomStates : public CaptureFixture {
 protected:
  RelationState Read(pg::Connection& on, const std::string& from,
                     const std::vector<std::string>& names,
                     const std::vector<std::string>& identities) {
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name + "::text";
    const auto rows = on.Execute("SELECT " + list + " FROM " + from);
    RelationState state{.columns = identities, .rows = {}};
    for (int i = 0; i < rows.rows(); ++i) {
      Texts row;
      for (int j = 0; j < rows.columns(); ++j) row.push_back(rows.optional(i, j));
      const std::string id = *row[0];
      EXPECT_TRUE(state.rows.emplace(id, std::move(row)).second) << "two rows with key " << id;
    }
    return state;
  }
};

TEST_F(RandomStates, EveryPastStateIsReadBackAndEveryVersionIsWhatAnOutsiderComputes) {
  std::minstd_rand random(static_cast<unsigned>(Setting("TIDEMARK_STATES_SEED", 1)));
  const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  source_->Execute(
      "SET TimeZone = 'UTC'; SET extra_float_digits = 3; "
      "CREATE TABLE s (id int PRIMARY KEY, a text, n int, f float8, t timestamptz)");
  std::vector<std::string> names = {"id", "a", "n", "f", "t"};
  std::vector<std::string> identities = {"id#0", "a#0", "n#0", "f#0", "t#0"};
  std::map<std::string, int> generations;
  std::map<std::string, std::string> types = {{"n", "int"}};
  history_.rows_aimed = 150;

  const auto fill = [&](const std::string& where) {
    for (size_t i = 1; i < names.size(); ++i) {
      if (!chance(70)) continue;
      const auto& name = names[i];
      const std::string seed = std::to_string(random() % 1000);
      const std::string value =
          name == "n"   ? "(id * " + seed + ") % 97"
          : name == "f" ? "sin(id + " + seed + ") * 1e" + std::to_string(random() % 40)
          : name == "t" ? "'2026-01-01+00'::timestamptz + id * interval '1.000001 s' * " + seed
                        : "CASE WHEN id % 7 = 0 THEN NULL ELSE repeat('ü" + seed + "', id % 5) END";
      source_->Execute("UPDATE s SET " + name + " = " + value + where);
    }
  };
  const auto where = [&] {
    return " WHERE id % " + std::to_string(random() % 9 + 1) + " = " + std::to_string(random() % 3);
  };

  VersionModel model;
  std::vector<RelationState> states;
  std::string returned_to;  // a table with an earlier state
  std::vector<std::string> returned_identities;
  const int rounds = Setting("TIDEMARK_STATES_ROUNDS", 40);
  for (int round = 0; round < rounds; ++round) {
    const int act = static_cast<int>(random() % 12);
    if (act < 4) {
      const auto from = std::to_string(random() % 200);
      source_->Execute("INSERT INTO s (id) SELECT i FROM generate_series(" + from + "::int, " +
                       from + " + " + std::to_string(random() % 60) +
                       ") i ON CONFLICT DO NOTHING");
      fill(where());
    } else if (act < 6) {
      fill(where());
    } else if (act == 6) {
      source_->Execute("DELETE FROM s" + where());
    } else if (act == 7 && chance(40)) {
      source_->Execute("DELETE FROM s");
    } else if (act == 8) {
      if (returned_to.empty() || returned_identities != identities) {
        source_->Execute("DROP TABLE IF EXISTS earlier; CREATE TABLE earlier AS SELECT * FROM s");
        returned_to = "earlier";
        returned_identities = identities;
      } else {
        std::string list;
        for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
        source_->Execute("DELETE FROM s; INSERT INTO s (" + list + ") SELECT " + list +
                         " FROM earlier");
      }
    } else if (act == 9) {
      const std::vector<std::string> wider = {"int", "bigint", "numeric"};
      types["n"] = wider[random() % wider.size()];
      source_->Execute("ALTER TABLE s ALTER n TYPE " + types["n"]);
    } else if (act == 10) {
      // One of three names, so that names come back.
      const std::string name = "x" + std::to_string(random() % 3);
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        source_->Execute("ALTER TABLE s ADD " + name + " text" +
                         (chance(30) ? " DEFAULT 'filled'" : ""));
        names.push_back(name);
        identities.push_back(Identity(name, generations[name]++));
      }
    } else if (act == 11 && names.size() > 5) {
      source_->Execute("ALTER TABLE s DROP " + names.back());
      names.pop_back();
      identities.pop_back();
    }

    SCOPED_TRACE("round " + std::to_string(round));
    const auto member = Captured({Snapshot("s")});
    states.push_back(Read(*source_, "public.s", names, identities));
    const bool changed = model.Observe(states.back(), 0);
    ASSERT_EQ(member.outcome,
              changed ? MemberOutcome::kPublished : MemberOutcome::kUnchanged);
    ASSERT_EQ(member.version, model.version());
    ASSERT_EQ(member.puts, model.puts());
    ASSERT_EQ(member.deletions, model.deletions());
    ASSERT_EQ(member.live_rows, static_cast<int64_t>(states.back().rows.size()));

    // Every past state in today's shape; every tenth round, all of them.
    for (size_t past = round % 10 == 9 || round + 1 == rounds ? 0 : states.size() - 1;
         past < states.size(); ++past) {
      SCOPED_TRACE("as of capture " + std::to_string(past));
      const auto read = Read(*store_,
                             "tidemark.as_of(NULL::public.s, '" + instants_[past] + "')", names,
                             identities);
      ASSERT_EQ(read.rows.size(), states[past].rows.size());
      for (const auto& [id, row] : states[past].rows) {
        const auto found = read.rows.find(id);
        ASSERT_NE(found, read.rows.end()) << id;
        for (size_t i = 0; i < identities.size(); ++i) {
          const auto column = std::find(states[past].columns.begin(), states[past].columns.end(),
                                        identities[i]);
          const auto then = column == states[past].columns.end()
                                ? std::nullopt
                                : row[static_cast<size_t>(column - states[past].columns.begin())];
          ASSERT_EQ(found->second[i], then) << "row " << id << ", " << identities[i];
        }
      }
    }
  }
  ExpectChainsHold();
  ExpectNothingLeftBehind();
}

}  // namespace
}  // namespace tidemark::tests
