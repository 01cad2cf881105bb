#include "capture/publishing_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>

namespace tidemark::capture {
namespace {

TEST(PublishingThread, WaitsForNothingWhenNothingWasBegun) {
  PublishingThread thread;
  EXPECT_FALSE(thread.busy());
  thread.Wait();
}

TEST(PublishingThread, IsBusyUntilTheWorkHasEnded) {
  std::promise<void> gate, told;
  PublishingThread thread;
  thread.Start([&, open = gate.get_future().share()] { open.wait(); }, [&] { told.set_value(); });
  EXPECT_TRUE(thread.busy());
  gate.set_value();
  thread.Wait();
  EXPECT_FALSE(thread.busy());
  told.get_future().wait();  // ended is called after, or the test does not end
}

TEST(PublishingThread, ThrowsWhatTheWorkThrewOnce) {
  PublishingThread thread;
  thread.Start([] { throw std::runtime_error("no room"); }, [] {});
  EXPECT_THROW(thread.Wait(), std::runtime_error);
  thread.Wait();
  bool ran = false;
  thread.Start([&] { ran = true; }, [] {});
  thread.Wait();
  EXPECT_TRUE(ran) << "a failure ended the thread";
}

TEST(PublishingThread, WhatTheWorkHoldsIsGoneWhenItHasEnded) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  PublishingThread thread;
  thread.Start([held = std::move(held)] {}, [] {});
  thread.Wait();
  EXPECT_TRUE(seen.expired());
}

TEST(PublishingThread, ItsEndWaitsForTheWork) {
  std::promise<void> gate;
  bool ran = false;
  {
    PublishingThread thread;
    thread.Start([&, open = gate.get_future().share()] {
      open.wait();
      ran = true;
    }, [] {});
    gate.set_value();
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace tidemark::capture
