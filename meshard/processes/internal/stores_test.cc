#include "meshard/processes/internal/stores.h"

#include <gtest/gtest.h>

#include <thread>

namespace meshard::internal {
namespace {

TEST(LocalStore, PutAndGet) {
  LocalStore store;
  EXPECT_EQ(store.try_get("k").value(), std::nullopt);
  EXPECT_EQ(store.get("k", std::chrono::milliseconds(5)).error().code(),
            ErrorCode::kDeadlineExceeded);
  store.put("k", "v").value();
  store.put("k", "w").value();
  EXPECT_EQ(store.get("k", kNoTimeLimit).value(), "w");
  EXPECT_EQ(store.try_get("k").value(), "w");
}

TEST(LocalStore, GetWaits) {
  LocalStore store;
  std::jthread other([&] { store.put("k", "v").value(); });
  EXPECT_EQ(store.get("k", kNoTimeLimit).value(), "v");
}

TEST(LocalStore, PublishOnce) {
  LocalStore store;
  std::string first;
  store.publish("k", "v", &first).value();
  EXPECT_EQ(first, "v");
  store.publish("k", "v", nullptr).value();
  EXPECT_EQ(store.publish("k", "w", &first).error().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(first, "v");
}

}  // namespace
}  // namespace meshard::internal
