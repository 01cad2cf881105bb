// Captures of a relation that was captured before: rows that are there already are not even staged,
// and whatever order they come in, the answer is the same.
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include <filesystem>

#include "source/files/file_relation.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;

class SiftedCapture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL, n numeric); "
        "INSERT INTO t SELECT i, 'row ' || i, i / 8.0 FROM generate_series(1, 30000) i; "
        "CREATE TABLE last (id int PRIMARY KEY); INSERT INTO last VALUES (1)");
    Captured({Snapshot("t"), Snapshot("last")});
  }
  // What is staged of t when all of it has been read.
  std::string Staged() {
    std::string staged;
    progressed_ = [&](const capture::PlannedDataset& dataset, int64_t) {
      if (dataset.name == "public.last") {
        const auto stage =
            Value("SELECT 'tidemark_stage.c' || max(id) || '_d1' FROM tidemark.capture");
        staged = Value("SELECT count(*) FROM " + stage);
      }
    };
    Captured({Snapshot("t"), Snapshot("last")});
    progressed_ = nullptr;
    return staged;
  }
  // The same rows in another order.
  void Reorder(const std::string& by) {
    source_->Execute("CREATE TABLE other AS SELECT * FROM t ORDER BY " + by +
                     "; DROP TABLE t; ALTER TABLE other RENAME TO t");
  }
};

TEST_F(SiftedCapture, NothingIsStagedOfAnUnchangedRelationInWhateverOrder) {
  EXPECT_EQ(Staged(), "0");
  Reorder("id DESC");
  EXPECT_EQ(Staged(), "0");
  Reorder("md5(id::text)");
  EXPECT_EQ(Staged(), "0");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx WHERE journal = 1"), "1");
  ExpectChainsHold();
}

TEST_F(SiftedCapture, OnlyRowsThatDifferAreStaged) {
  source_->Execute(
      "UPDATE t SET n = n + 1 WHERE id % 1000 = 7; DELETE FROM t WHERE id % 5000 = 3; "
      "INSERT INTO t SELECT i, 'new', NULL FROM generate_series(40001, 40010) i");
  EXPECT_EQ(Staged(), "40");
  EXPECT_EQ(
      Rows("SELECT puts, deletions FROM tidemark.basis_member WHERE dataset = 1 ORDER BY basis"),
      "30000|0\n40|6\n");
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
  ExpectNothingLeftBehind();
}

TEST_F(SiftedCapture, EndsOfTheRelationThatAreGoneOrNewAreFound) {
  for (const char* change :
       {"DELETE FROM t WHERE id > 20000", "DELETE FROM t WHERE id <= 10000",
        "INSERT INTO t SELECT i, 'back', 0 FROM generate_series(1, 9000) i",
        "INSERT INTO t SELECT i, 'more', 0 FROM generate_series(20001, 45000) i",
        "UPDATE t SET a = a || '!'", "DELETE FROM t WHERE id < 45000", "DELETE FROM t"}) {
    source_->Execute(change);
    Captured({Snapshot("t")});
    ExpectSame("SELECT * FROM public.t ORDER BY id");
  }
  ExpectChainsHold();
}

TEST_F(SiftedCapture, ARowThatStandsTwiceIsRefusedNamingBoth) {
  Reorder("id");
  source_->Execute("INSERT INTO t SELECT * FROM t WHERE id = 17");
  auto error = Refused({Snapshot("t")});
  EXPECT_EQ(error.state(), base::kUniqueViolation);
  EXPECT_THAT(error.detail(), HasSubstr("id=17 in rows 17, 30001"));
  // The other row of that key differs.
  source_->Execute("UPDATE t SET a = 'different' WHERE ctid = (SELECT max(ctid) FROM t)");
  error = Refused({Snapshot("t")});
  EXPECT_THAT(error.detail(), HasSubstr("id=17 in rows 17, 30001"));
  EXPECT_EQ(Value("SELECT a FROM public.t WHERE id = 17"), "row 17");
}

// {"a": n} in a file of Arrow's own; the store spells such a value with a blank that the capture
// does not send.
void WriteNested(const std::filesystem::path& path, int rows) {
  arrow::Int32Builder ids;
  auto numbers = std::make_shared<arrow::Int32Builder>();
  arrow::StructBuilder nested(arrow::struct_({arrow::field("a", arrow::int32())}),
                              arrow::default_memory_pool(), {numbers});
  for (int id = 1; id <= rows; ++id) {
    ASSERT_TRUE(ids.Append(id).ok());
    ASSERT_TRUE(nested.Append().ok());
    ASSERT_TRUE(numbers->Append(id % 10).ok());
  }
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int32()), arrow::field("j", nested.type())});
  const auto batch = arrow::RecordBatch::Make(
      schema, rows, {ids.Finish().ValueOrDie(), nested.Finish().ValueOrDie()});
  const auto out = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
  const auto writer = arrow::ipc::MakeFileWriter(out, schema).ValueOrDie();
  ASSERT_TRUE(writer->WriteRecordBatch(*batch).ok());
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(out->Close().ok());
}

TEST_F(SiftedCapture, RowsWhoseBytesDifferThoughTheirValuesDoNotMakeNoVersion) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "nested.arrow";
  WriteNested(path, 200);
  auto nested = Snapshot("nested");
  nested.source_kind = "files";
  nested.open = [path] { return source::OpenFileRelation({.pattern = path.string()}); };
  Captured({nested});
  EXPECT_EQ(Value("SELECT j FROM public.nested WHERE id = 7"), "{\"a\": 7}");
  EXPECT_EQ(Captured({nested}).outcome, MemberOutcome::kUnchanged);
  WriteNested(path, 201);
  EXPECT_EQ(Captured({nested}).puts, 1);
  ExpectChainsHold();
}

TEST_F(SiftedCapture, ATableThatWasRewrittenBeforeItsChangesAreAppliedIsNotTouched) {
  source_->Execute("UPDATE t SET n = -1 WHERE id % 100 = 0");
  store_->Execute("UPDATE tidemark_current.d1 SET n = n WHERE id < 500");  // so that rows move
  progressed_ = [&](const capture::PlannedDataset& dataset, int64_t) {
    if (dataset.name == "public.last") store_->Execute("VACUUM FULL tidemark_current.d1");
  };
  const auto before = Rows("SELECT * FROM public.t ORDER BY id");
  const auto error = Refused({Snapshot("t"), Snapshot("last")});
  EXPECT_EQ(error.state(), base::kNotInPrerequisiteState);
  EXPECT_THAT(error.message(), HasSubstr("rewritten"));
  EXPECT_EQ(Rows("SELECT * FROM public.t ORDER BY id"), before);
  progressed_ = nullptr;
  EXPECT_EQ(Captured({Snapshot("t"), Snapshot("last")}).puts, 300);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
}

}  // namespace
}  // namespace tidemark::tests
