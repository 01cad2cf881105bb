// The same statements directly on the store and through a gateway, in every manner of sending them:
// each message of the answers is equal, byte for byte but for numbers that the server made up. And
// each temporal statement answers what its meaning, written by hand, answers directly.
#include <fmt/format.h>

#include "tests/gateway/statement_file.h"
#include "tests/gateway/time_travel_fixture.h"
#include "tests/gateway/transcript.h"

namespace tidemark::tests {
namespace {

using gateway::RawClient;
using Statements = std::vector<FileStatement>;

constexpr Manner kManners[] = {Manner::kSimple,   Manner::kExtended,  Manner::kBinary,
                               Manner::kRowByRow, Manner::kPipelined, Manner::kOneSyncInFive};

Statements StatementsOf(const std::string& name) {
  return ReadStatements(std::string(TIDEMARK_SOURCE_DIR) + "/tests/gateway/statements/" + name);
}

bool Failed(const std::string& answer) {
  return answer.starts_with("E ") || answer.find("\nE ") != std::string::npos;
}

class Differential : public TimeTravelFixture {
 protected:
  using Answers = std::vector<std::string>;

  Answers Directly(const Statements& statements, Manner manner, const std::string& user,
                   Transcript::Options options = {}) {
    RawClient client(Cluster::Shared());
    return RunOn(client, statements, manner, user, options);
  }
  Answers Through(const Statements& statements, Manner manner, const std::string& user,
                  Transcript::Options options = {}) {
    RawClient client(gateway().port());
    return RunOn(client, statements, manner, user, options);
  }

  /// The number of answers that are no error, over all manners.
  size_t ExpectEqual(const std::string& file, const std::string& user = "postgres") {
    const auto statements = StatementsOf(file);
    size_t successes = 0;
    for (const auto manner : kManners) {
      const auto want = Directly(statements, manner, user);
      const auto got = Through(statements, manner, user);
      Compare(statements, manner, want, got, file);
      for (const auto& answer : want) successes += Failed(answer) ? 0 : 1;
    }
    return successes;
  }

  void Compare(const Statements& statements, Manner manner, const Answers& want,
               const Answers& got, const std::string& file) {
    ASSERT_EQ(want.size(), got.size()) << file << " " << NameOf(manner);
    EXPECT_EQ(want[0], got[0]) << file << " " << NameOf(manner) << ": the start of the session";
    const size_t each = manner == Manner::kOneSyncInFive ? 5 : 1;
    for (size_t i = 1; i < want.size(); ++i) {
      const auto& first = statements.at((i - 1) * each);
      EXPECT_EQ(want[i], got[i]) << file << ":" << first.line << " " << NameOf(manner) << ": "
                                 << first.sql;
    }
  }

 private:
  Answers RunOn(RawClient& client, const Statements& statements, Manner manner,
                const std::string& user, Transcript::Options options) {
    // What a run left behind that ended in the middle of a transaction.
    mirror().store_->Execute("DROP SCHEMA IF EXISTS scratch CASCADE");
    Transcript transcript(client, options);
    const auto start = transcript.Start(mirror().database(), user);
    Answers answers;
    try {
      answers = transcript.Run(statements, manner);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}", NameOf(manner), error.what()));
    }
    answers.insert(answers.begin(), start);
    return answers;
  }
};

TEST_F(Differential, QueriesAreEqual) { EXPECT_GT(ExpectEqual("queries.sql"), 200U); }
TEST_F(Differential, ValuesAreEqual) { EXPECT_GT(ExpectEqual("values.sql"), 100U); }
TEST_F(Differential, ParametersAreEqual) { EXPECT_GT(ExpectEqual("parameters.sql"), 40U); }
TEST_F(Differential, ErrorsAreEqual) { EXPECT_GT(ExpectEqual("errors.sql"), 0U); }
TEST_F(Differential, TransactionsAreEqual) { EXPECT_GT(ExpectEqual("transactions.sql"), 200U); }
TEST_F(Differential, CopiesAreEqual) { EXPECT_GT(ExpectEqual("copy.sql"), 40U); }
TEST_F(Differential, DataAndDefinitionsAreEqual) {
  EXPECT_GT(ExpectEqual("data_and_definitions.sql"), 200U);
}
TEST_F(Differential, WhatAReaderMayDoIsEqual) {
  EXPECT_GT(ExpectEqual("reader.sql", "gateway_reader"), 20U);
}

class Temporal : public Differential {
 protected:
  /// {1} an instant, {p1} a position, {s1} a source time, as literals.
  static std::string Filled(std::string sql) {
    for (int n = 0; n < 4; ++n) {
      for (const auto& [mark, value] : {std::pair{fmt::format("{{{}}}", n), At(n)},
                                        std::pair{fmt::format("{{p{}}}", n), Position(n)},
                                        std::pair{fmt::format("{{s{}}}", n), SourceAt(n)}}) {
        for (size_t at = sql.find(mark); at != std::string::npos; at = sql.find(mark)) {
          sql.replace(at, mark.size(), value);
        }
      }
    }
    return sql;
  }
};

TEST_F(Temporal, StatementsAnswerWhatTheirMeaningAnswers) {
  for (const auto manner : kManners) {
    Statements asked, meant;
    for (auto statement : StatementsOf("temporal.sql")) {
      if (manner == Manner::kSimple && !statement.parameters.empty()) continue;
      const auto by_hand = statement.by_hand.empty() ? statement.sql : statement.by_hand;
      statement.sql = Filled(statement.sql);
      asked.push_back(statement);
      statement.sql = Filled(by_hand);
      meant.push_back(statement);
    }
    // A function's columns come from no table.
    const Transcript::Options options{.origins = false};
    const auto want = Directly(meant, manner, "postgres", options);
    const auto got = Through(asked, manner, "postgres", options);
    Compare(asked, manner, want, got, "temporal.sql");
    for (const auto& answer : want) EXPECT_FALSE(Failed(answer)) << answer;
  }
}

}  // namespace
}  // namespace tidemark::tests
