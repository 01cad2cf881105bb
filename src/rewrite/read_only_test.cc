#include "rewrite/read_only.h"

#include <gtest/gtest.h>

namespace tidemark::rewrite {
namespace {

TEST(LeavesReadOnly, SeesEverySpelling) {
  for (const char* sql : {
           "SET default_transaction_read_only = off",
           "SET LOCAL transaction_read_only TO false",
           "set session Default_Transaction_Read_Only to 'n'",
           "SET default_transaction_read_only = 0",
           "SET TRANSACTION READ WRITE",
           "BEGIN READ WRITE",
           "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
           "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
           "SELECT set_config('default_transaction_read_only', 'off', false)",
           "SELECT 1; /* x */ SET default_transaction_read_only = no",
       }) {
    const auto error = LeavesReadOnly(sql);
    ASSERT_TRUE(error.has_value()) << sql;
    EXPECT_EQ(error->state().str(), "25006") << sql;
  }
  EXPECT_EQ(LeavesReadOnly("SELECT 'é'; BEGIN READ WRITE")->position(), 13);
}

TEST(LeavesReadOnly, LeavesTheRestAlone) {
  for (const char* sql : {
           "SELECT 1",
           "SET default_transaction_read_only = on",
           "SET default_transaction_read_only = 1",
           "SET transaction_read_only TO yes",
           "RESET default_transaction_read_only",
           "SHOW transaction_read_only",
           "BEGIN READ ONLY",
           "SELECT 'READ WRITE'",
           "SELECT set_config('default_transaction_read_only', 'on', false)",
           "SET default_transaction_read_only = 'off",
       }) {
    EXPECT_FALSE(LeavesReadOnly(sql).has_value()) << sql;
  }
}

}  // namespace
}  // namespace tidemark::rewrite
