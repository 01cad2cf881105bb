#include "http/problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tidemark::http {
namespace {

using base::Error;
using base::SqlState;

TEST(Problem, SaysWhatTheErrorSays) {
  const auto response = Problem(Error(base::kSnapshotTooOld, "events after 1-2 have been pruned")
                                    .Detail("They are kept from after 5-1 on.")
                                    .Hint("Start anew."));
  EXPECT_EQ(response.status, 410);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const auto problem = nlohmann::json::parse(response.body);
  EXPECT_EQ(problem["type"], "about:blank");
  EXPECT_EQ(problem["title"], "Gone");
  EXPECT_EQ(problem["status"], 410);
  EXPECT_EQ(problem["detail"], "events after 1-2 have been pruned");
  EXPECT_EQ(problem["explanation"], "They are kept from after 5-1 on.");
  EXPECT_EQ(problem["hint"], "Start anew.");
  EXPECT_EQ(problem["sqlstate"], "72000");
}

TEST(Problem, StatusFollowsFromTheSqlState) {
  const auto status = [](const char* state) {
    return Problem(Error(SqlState(state), "x")).status;
  };
  EXPECT_EQ(status("22023"), 400);
  EXPECT_EQ(status("22021"), 400);
  EXPECT_EQ(status("28000"), 401);
  EXPECT_EQ(status("42704"), 404);
  EXPECT_EQ(status("23505"), 409);
  EXPECT_EQ(status("55000"), 409);
  EXPECT_EQ(status("72000"), 410);
  EXPECT_EQ(status("08006"), 503);
  EXPECT_EQ(status("53300"), 503);
  EXPECT_EQ(status("57014"), 503);
  EXPECT_EQ(status("25006"), 503);
  EXPECT_EQ(status("42601"), 500);
  EXPECT_EQ(status("XX000"), 500);
}

TEST(Problem, WhatIsNoUtf8IsShownAllTheSame) {
  EXPECT_NO_THROW(nlohmann::json::parse(Problem(400, Error(base::kInvalidParameter, "\xff")).body));
}

}  // namespace
}  // namespace tidemark::http
