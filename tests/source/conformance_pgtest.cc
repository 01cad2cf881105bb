// What every source promises, asked of every source: PostgreSQL, ADBC drivers, files of each
// format.
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "base/error.h"
#include "tests/cluster.h"
#include "tests/source/loaded.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {
namespace {

using source::Batch;
using source::End;

std::vector<SpecimenKind> Together(const std::vector<std::vector<SpecimenKind>>& groups) {
  std::vector<SpecimenKind> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

class Conformance : public testing::TestWithParam<SpecimenKind> {
 protected:
  Conformance()
      : specimen_(GetParam().make()),
        store_(pg::Connection::Open({.dsn = NewDatabase()},
                                    base::Deadline::After(std::chrono::seconds(30)))) {}

  static base::Error ErrorOf(const std::function<void()>& act) {
    try {
      act();
    } catch (const base::Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return base::Error(base::kInternalError, "no error");
  }

  // How many rows of `table` are not as the specimen's are, and how many of 1 to `rows` are
  // missing.
  std::string Differences(const std::string& table, int rows) {
    return store_.Value(fmt::format(
        "SELECT count(*) FROM {} t FULL JOIN generate_series(1, {}) g ON t.id = g"
        " WHERE t.id IS NULL OR g IS NULL OR t.amount <> g + 0.25"
        " OR t.name IS DISTINCT FROM CASE WHEN g % 7 <> 0 THEN 'row ' || g END",
        table, rows));
  }

  std::unique_ptr<Specimen> specimen_;
  pg::Connection store_;
};

class CursorConformance : public Conformance {};  // sources with a cursor strategy
class ServerConformance : public Conformance {};  // sources that may let a reader wait
class FileConformance : public Conformance {};

auto Named = [](const auto& kind) { return kind.param.name; };
const auto databases = Together({PostgresSpecimens(), AdbcSpecimens()});
INSTANTIATE_TEST_SUITE_P(Sources, Conformance,
                         testing::ValuesIn(Together({databases, FileSpecimens()})), Named);
INSTANTIATE_TEST_SUITE_P(Sources, CursorConformance, testing::ValuesIn(databases), Named);
INSTANTIATE_TEST_SUITE_P(Sources, ServerConformance, testing::ValuesIn(ServerSpecimens()), Named);
INSTANTIATE_TEST_SUITE_P(Sources, FileConformance, testing::ValuesIn(FileSpecimens()), Named);

TEST_P(Conformance, EveryRowArrivesOnceWithItsNulls) {
  const auto relation = specimen_->Rows(10'000);
  const auto reader = relation->ReadAll({}, Soon());
  Load(*reader, store_, "loaded");
  EXPECT_EQ(Differences("loaded", 10'000), "0");
}

TEST_P(Conformance, DescribesWhatItThenReads) {
  const auto relation = specimen_->Rows(100);
  const source::RelationShape shape = relation->Describe(Soon());
  std::vector<std::string> names;
  for (const auto& column : shape.columns) {
    names.push_back(column.column.name);
    EXPECT_NE(column.column.type_sql, "");
    EXPECT_NE(column.source_type, "");
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("id", "name", "amount"));
  const auto reader = relation->ReadAll({}, Soon());
  EXPECT_TRUE(reader->shape().schema->Equals(*shape.schema, /*check_metadata=*/true));
  Load(*reader, store_, "loaded");
}

TEST_P(Conformance, BatchesKeepToRowsAndBytes) {
  const auto relation = specimen_->Rows(10'000);
  const auto by_rows = relation->ReadAll({.limits = {.rows_max = 300}}, Soon());
  const Loaded rows = Load(*by_rows, store_, "by_rows");
  EXPECT_LE(rows.rows_max, 300);
  EXPECT_GE(rows.batches, 34);
  constexpr int64_t kBytes = 16 * 1024;
  const auto by_bytes = relation->ReadAll({.limits = {.bytes_max = kBytes}}, Soon());
  const Loaded bytes = Load(*by_bytes, store_, "by_bytes");
  EXPECT_LE(bytes.bytes_max, 2 * kBytes);  // with ordinals, offsets and NULL bits
  EXPECT_EQ(Differences("by_rows", 10'000), "0");
  EXPECT_EQ(Differences("by_bytes", 10'000), "0");
}

TEST_P(Conformance, OrdinalsGoOnFromWhereTheyAreTold) {
  const auto relation = specimen_->Rows(10);
  const auto reader = relation->ReadAll({.first_ordinal = 501}, Soon());
  const source::Step step = reader->Next(Soon());
  ASSERT_TRUE(std::holds_alternative<Batch>(step));
  EXPECT_EQ(std::get<Batch>(step).first_ordinal, 501);
}

TEST_P(Conformance, AnEmptyRelationEndsWithoutABatch) {
  const size_t columns = GetParam().name == "JsonLines" ? 0 : 3;  // no line, no column
  const auto relation = specimen_->Rows(0);
  const auto reader = relation->ReadAll({}, Soon());
  EXPECT_EQ(reader->shape().columns.size(), columns);
  const source::Step step = reader->Next(Soon());
  ASSERT_TRUE(std::holds_alternative<End>(step));
  EXPECT_EQ(std::get<End>(step).rows, 0);
  EXPECT_TRUE(std::holds_alternative<End>(reader->Next(Soon())));
}

TEST_P(Conformance, TheEndSaysWhereItWasRead) {
  const auto relation = specimen_->Rows(10);
  const auto reader = relation->ReadAll({}, Soon());
  const Loaded loaded = Load(*reader, store_, "loaded");
  for (const std::string& fact : specimen_->Facts()) {
    EXPECT_NE(loaded.end.position.Find(fact), "") << fact;
  }
  const auto again = reader->Next(Soon());
  ASSERT_TRUE(std::holds_alternative<End>(again));
  EXPECT_EQ(std::get<End>(again).position.facts, loaded.end.position.facts);
}

TEST_P(Conformance, ASecondReadGivesTheSameRows) {
  const auto relation = specimen_->Rows(3'000);
  for (const char* table : {"first", "second"}) {
    const auto reader = relation->ReadAll({}, Soon());
    Load(*reader, store_, table);
  }
  EXPECT_EQ(store_.Value("SELECT count(*) FROM (SELECT id, name, amount FROM first EXCEPT"
                         " SELECT id, name, amount FROM second) d"),
            "0");
  EXPECT_EQ(Differences("second", 3'000), "0");
}

TEST_P(Conformance, AMissingRelationIsUndefined) {
  const auto relation = specimen_->Missing();
  EXPECT_EQ(ErrorOf([&] { relation->Describe(Soon()); }).state(), base::kUndefinedTable);
  EXPECT_EQ(ErrorOf([&] { relation->ReadAll({}, Soon()); }).state(), base::kUndefinedTable);
  const auto problems = relation->Check({}, Soon());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].state, base::kUndefinedTable);
  EXPECT_EQ(problems[0].severity, source::Severity::kRefusesTable);
}

TEST_P(Conformance, AnErrorMidwayIsNeverAnEnd) {
  const auto relation = specimen_->Broken();
  std::unique_ptr<source::Reader> reader;
  try {
    reader = relation->ReadAll({.limits = {.rows_max = 500}}, Soon());
  } catch (const base::Error& error) {
    EXPECT_FALSE(error.IsTransient()) << error.Full();
    return;
  }
  const auto pull = [&] {
    while (std::holds_alternative<Batch>(reader->Next(Soon()))) {
    }
  };
  const base::Error error = ErrorOf(pull);
  EXPECT_FALSE(error.IsTransient()) << error.Full();
  EXPECT_EQ(ErrorOf(pull).message(), error.message());
}

TEST_P(Conformance, AStopEndsTheReadAtTheNextCall) {
  const auto relation = specimen_->Rows(10'000);
  std::stop_source stop;
  const source::Limit limit{base::Deadline::After(std::chrono::seconds(60)), stop.get_token()};
  const auto reader = relation->ReadAll({.limits = {.rows_max = 100}}, limit);
  ASSERT_TRUE(std::holds_alternative<Batch>(reader->Next(limit)));
  stop.request_stop();
  EXPECT_EQ(ErrorOf([&] { reader->Next(limit); }).state(), base::kQueryCanceled);
}

TEST_P(Conformance, ARelationCanBeReadAgainAfterAStop) {
  const auto relation = specimen_->Rows(10'000);
  {
    std::stop_source stop;
    const source::Limit limit{base::Deadline::After(std::chrono::seconds(60)), stop.get_token()};
    const auto reader = relation->ReadAll({.limits = {.rows_max = 100}}, limit);
    reader->Next(limit);
    stop.request_stop();
    ErrorOf([&] { reader->Next(limit); });
  }
  const auto reader = relation->ReadAll({}, Soon());
  Load(*reader, store_, "loaded");
  EXPECT_EQ(Differences("loaded", 10'000), "0");
}

TEST_P(ServerConformance, AStopInterruptsASourceThatDoesNotAnswer) {
  const auto relation = specimen_->Stuck();
  std::stop_source stop;
  const source::Limit limit{base::Deadline::Never(), stop.get_token()};
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop.request_stop();
  });
  const base::Error error = ErrorOf([&] {
    const auto reader = relation->ReadAll({}, limit);
    while (std::holds_alternative<Batch>(reader->Next(limit))) {
    }
  });
  EXPECT_EQ(error.state(), base::kQueryCanceled) << error.Full();
}

TEST_P(ServerConformance, ADeadlineInterruptsASourceThatDoesNotAnswer) {
  const auto relation = specimen_->Stuck();
  const source::Limit limit{base::Deadline::After(std::chrono::milliseconds(500)), {}};
  const base::Error error = ErrorOf([&] {
    const auto reader = relation->ReadAll({}, limit);
    while (std::holds_alternative<Batch>(reader->Next(limit))) {
    }
  });
  EXPECT_EQ(error.state(), base::kQueryCanceled) << error.Full();
}

TEST_P(Conformance, ADeclaredColumnThatIsNotThereIsAProblem) {
  const auto relation = specimen_->Rows(10);
  for (const auto& problem : relation->Check({.key = {"id"}, .cursor = ""}, Soon())) {
    EXPECT_EQ(problem.severity, source::Severity::kNote) << problem.what;
  }
  const auto problems = relation->Check({.key = {"id", "idd"}, .cursor = ""}, Soon());
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].state, base::kUndefinedColumn);
  EXPECT_THAT(problems[0].what, testing::HasSubstr("\"idd\""));
}

TEST_P(CursorConformance, ACursorReadsOnlyWhatCameAfter) {
  const auto relation = specimen_->Rows(2'000);
  source::CursorPlan plan{.cursor = "id", .key = {"id"}};
  const auto first = relation->ReadSince(plan, {}, Soon());
  const Loaded all = Load(*first, store_, "all_rows");
  EXPECT_EQ(Differences("all_rows", 2'000), "0");
  ASSERT_TRUE(all.end.position.resume.has_value());
  EXPECT_EQ(*all.end.position.resume, (source::CursorPosition{"2000", {"2000"}}));

  plan.after = source::CursorPosition{"1500", {"1500"}};
  const auto second = relation->ReadSince(plan, {}, Soon());
  EXPECT_EQ(Load(*second, store_, "later").end.rows, 500);
  EXPECT_EQ(store_.Value("SELECT min(id) || ' ' || max(id) FROM later"), "1501 2000");
  EXPECT_EQ(store_.Value("SELECT count(*) FROM later WHERE id <> _ordinal + 1500"), "0");

  plan.after = all.end.position.resume;
  const auto third = relation->ReadSince(plan, {}, Soon());
  const Loaded nothing = Load(*third, store_, "nothing");
  EXPECT_EQ(nothing.end.rows, 0);
  EXPECT_EQ(nothing.end.position.resume, plan.after);

  plan.overlap = "10";
  const auto fourth = relation->ReadSince(plan, {}, Soon());
  EXPECT_EQ(Load(*fourth, store_, "overlap").end.rows, 11);
}

TEST_P(CursorConformance, ACursorThatWentBackwardsIsRefused) {
  const auto relation = specimen_->Rows(100);
  const source::CursorPlan plan{
      .cursor = "id", .key = {"id"}, .after = source::CursorPosition{"101", {"101"}}};
  EXPECT_EQ(ErrorOf([&] { relation->ReadSince(plan, {}, Soon()); }).state(),
            base::kNotInPrerequisiteState);
}

TEST_P(CursorConformance, ANullCursorIsRefusedWithTheNumberOfRows) {
  const auto relation = specimen_->Rows(100);
  const source::CursorPlan plan{.cursor = "name", .key = {"id"}};
  const base::Error error = ErrorOf([&] { relation->ReadSince(plan, {}, Soon()); });
  EXPECT_EQ(error.state(), base::kNullValueNotAllowed);
  EXPECT_THAT(error.message(), testing::HasSubstr("14 rows"));
}

TEST_P(FileConformance, FilesHaveNoCursor) {
  const auto relation = specimen_->Rows(10);
  const source::CursorPlan plan{.cursor = "id", .key = {"id"}};
  EXPECT_EQ(ErrorOf([&] { relation->ReadSince(plan, {}, Soon()); }).state(),
            base::kFeatureNotSupported);
  EXPECT_FALSE(relation->Check({.key = {"id"}, .cursor = "id"}, Soon()).empty());
}

}  // namespace
}  // namespace tidemark::tests
