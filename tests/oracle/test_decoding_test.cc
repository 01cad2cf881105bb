#include "tests/oracle/test_decoding.h"

#include <gtest/gtest.h>

namespace tidemark::oracle {
namespace {

TEST(TestDecoding, ReadsQuotesLinesAndNulls) {
  const auto change = ReadChange(
      "table public.t: INSERT: id[integer]:1 note[character varying]:'it''s\n[x]:1 new-tuple: ' "
      "n[numeric]:null f[double precision]:-0");
  EXPECT_EQ(change.tables, std::vector<std::string>{"t"});
  EXPECT_EQ(change.new_row.at("note").value, "it's\n[x]:1 new-tuple: ");
  EXPECT_EQ(change.new_row.at("n").value, std::nullopt);
  EXPECT_EQ(change.new_row.at("f").value, "-0");
  EXPECT_FALSE(change.old_row);
}

TEST(TestDecoding, TellsOldKeysFromNewRowsAndUnchangedFromNull) {
  const auto change = ReadChange(
      "table public.t: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 "
      "big[text]:unchanged-toast-datum other[text]:null");
  EXPECT_EQ(change.old_row->at("id").value, "1");
  EXPECT_EQ(change.new_row.at("id").value, "2");
  EXPECT_TRUE(change.new_row.at("big").unchanged);
  EXPECT_FALSE(change.new_row.at("other").unchanged);
}

TEST(TestDecoding, NamesAllTablesOfATruncate) {
  const auto change = ReadChange("table public.a, public.b: TRUNCATE: restart_seqs cascade");
  EXPECT_EQ(change.kind, Change::Kind::kTruncate);
  EXPECT_EQ(change.tables, (std::vector<std::string>{"a", "b"}));
}

TEST(TestDecoding, ReadsWhatTheWorkloadSaysAndNoOtherMessage) {
  const auto change = ReadMessage(
      "message: transactional: 1 prefix: oracle, sz: 22 content:rewrite t 2 23,20,25");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->kind, Change::Kind::kRewrite);
  EXPECT_EQ(change->tables, std::vector<std::string>{"t"});
  EXPECT_EQ(change->added, 2);
  EXPECT_EQ(change->types, "23,20,25");
  EXPECT_FALSE(change->of_rows());
  EXPECT_EQ(ReadMessage("message: transactional: 0 prefix: workload, sz: 7 content:outside"),
            std::nullopt);
}

}  // namespace
}  // namespace tidemark::oracle
