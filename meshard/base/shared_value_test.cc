#include "meshard/base/shared_value.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace meshard {
namespace {

TEST(SharedValue, IsKeptUntilItsLastHolderIsGone) {
  auto inside = std::make_shared<int>(3);
  std::weak_ptr<int> seen = inside;
  std::shared_ptr<const void> held = shared_value(std::move(inside));
  std::shared_ptr<const void> other = held;
  held.reset();
  EXPECT_EQ(**static_cast<const std::shared_ptr<int>*>(other.get()), 3);
  other.reset();
  EXPECT_TRUE(seen.expired());
}

TEST(SharedValue, HoldsConstAndLambdaTypes) {
  const std::string text = "a text that is longer than what a string stores inline";
  EXPECT_EQ(*static_cast<const std::string*>(shared_value(text).get()), text);
  auto add = [text](int n) { return text.size() + static_cast<std::size_t>(n); };
  EXPECT_EQ((*static_cast<const decltype(add)*>(shared_value(add).get()))(1), text.size() + 1);
}

}  // namespace
}  // namespace meshard
