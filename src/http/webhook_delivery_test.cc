#include "http/webhook_delivery.h"

#include <gtest/gtest.h>

#include <limits>

namespace tidemark::http {
namespace {

using std::chrono::milliseconds;

WebhookOptions Options() {
  WebhookOptions options;
  options.first_pause = milliseconds(1'000);
  options.pause_max = milliseconds(60'000);
  return options;
}

TEST(WebhookPause, DoublesFromTheFirstToTheLongest) {
  const auto options = Options();
  const int64_t expected[] = {1'000, 2'000, 4'000, 8'000, 16'000, 32'000, 60'000, 60'000};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(PauseAfter(i + 1, options, 0), milliseconds(expected[i])) << i;
  }
  EXPECT_EQ(PauseAfter(std::numeric_limits<int>::max(), options, 0), milliseconds(60'000));
}

TEST(WebhookPause, IsShortenedByChanceByUpToAHalf) {
  EXPECT_EQ(PauseAfter(3, Options(), 1), milliseconds(2'000));
  EXPECT_EQ(PauseAfter(3, Options(), 0.5), milliseconds(3'000));
  EXPECT_EQ(PauseAfter(100, Options(), 1), milliseconds(30'000));
}

}  // namespace
}  // namespace tidemark::http
