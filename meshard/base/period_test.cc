#include "meshard/base/period.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace meshard {
namespace {

std::optional<std::size_t> period_of(std::string_view text) {
  return find_period(std::vector<std::uint64_t>(text.begin(), text.end()));
}

TEST(Period, IsTheSmallest) {
  EXPECT_EQ(period_of("aaaa"), 1u);
  EXPECT_EQ(period_of("abababab"), 2u);
  EXPECT_EQ(period_of("abcabcabca"), 3u);
}

TEST(Period, WhatCameBeforeTheLoopMayDiffer) {
  EXPECT_EQ(period_of("xyzabcabcabc"), 3u);
  EXPECT_EQ(period_of("zxyzxywqabcabcabc"), 3u);
}

TEST(Period, AnInnerLoopAtTheEndDoesNotCount) {
  EXPECT_EQ(period_of("xaaaaxaaaaxaaaa"), 5u);
  EXPECT_EQ(period_of("xyzxuvwaaa"), std::nullopt);
}

TEST(Period, MustBeSeenTwice) {
  EXPECT_EQ(period_of("abcabc"), 3u);
  EXPECT_EQ(period_of("abcdeabcd"), std::nullopt);
  EXPECT_EQ(period_of("a"), std::nullopt);
  EXPECT_EQ(period_of(""), std::nullopt);
}

}  // namespace
}  // namespace meshard
