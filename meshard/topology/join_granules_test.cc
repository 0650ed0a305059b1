#include <gtest/gtest.h>

#include "meshard/topology/topology.h"

namespace meshard {
namespace {

TEST(JoinGranules, SideBySide) {
  std::vector<std::vector<std::int64_t>> meshes = {{0, 1, 2, 3}, {10, 11, 12, 13}};
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(join_granules(meshes, {2, 2}, {2, 1}), (Values{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(join_granules(meshes, {2, 2}, {1, 2}), (Values{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(join_granules({{7}}, {1, 1}, {1, 1}), Values{7});
}

}  // namespace
}  // namespace meshard
