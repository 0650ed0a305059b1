#include <algorithm>
#include <numeric>

#include "meshard/topology/hybrid_mesh.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using Taken = std::vector<IntVector>;

// From torch_xla 2.9.
TEST(TorusAssignment, WholeDirections) {
  EXPECT_EQ(assign_torus({2, 2, 1}, {1, 1, 4}, AxisSplit::kNever).taken,
            (Taken{{1, 1, 2}, {1, 1, 2}, {1, 1, 1}}));
  EXPECT_EQ(assign_torus({2, 2, 1}, {1, 2, 2}, AxisSplit::kNever).taken,
            (Taken{{1, 1, 2}, {1, 2, 1}, {1, 1, 1}}));
}

TEST(TorusAssignment, SplitDirections) {
  EXPECT_EQ(assign_torus({16, 16, 1}, {2, 128}, AxisSplit::kWhereNeeded).taken,
            (Taken{{1, 16}, {2, 8}, {1, 1}}));
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({16, 16, 1}, {2, 128}, AxisSplit::kNever);
      },
      ErrorCode::kUnimplemented, {"16 x 16 x 1", "2 x 128"}));
}

TEST(TorusAssignment, Refused) {
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({4, 4}, {3, 5}, AxisSplit::kWhereNeeded);
      },
      ErrorCode::kInvalidArgument, {"needs 15 devices", "has 16"}));
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({4, 4}, {1}, AxisSplit::kWhereNeeded);
      },
      ErrorCode::kInvalidArgument, {"leaves a part"}));
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({4}, {4, 0}, AxisSplit::kNever);
      },
      ErrorCode::kInvalidArgument, {"axis", "size 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({4, 0}, {4}, AxisSplit::kWhereNeeded);
      },
      ErrorCode::kInvalidArgument, {"direction", "size 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        assign_torus({2, 2, 2, 2}, {16}, AxisSplit::kNever);
      },
      ErrorCode::kUnimplemented, {}));
  EXPECT_EQ(assign_torus({2, 2, 2, 2}, {16}, AxisSplit::kNever, 4).taken, Taken(4, {2}));
}

// For all sizes, each axis has its size, each direction is used up, each place occurs once, and the
// list agrees with the layout.
TEST(TorusAssignment, EveryPlaceOnce) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    IntVector physical, logical(static_cast<std::size_t>(random.between(1, 4)), 1);
    for (int k = 0; k < 3; ++k) {
      std::int64_t size = std::int64_t{1} << random.between(0, 3);
      if (random.between(0, 3) == 0) size *= 3;
      physical.push_back(size);
      for (std::int64_t prime : {3, 2})
        for (; size % prime == 0; size /= prime)
          logical[random.between(0, std::ssize(logical) - 1)] *= prime;
    }
    TorusAssignment assignment = assign_torus(physical, logical, AxisSplit::kWhereNeeded);
    IntVector taken(logical.size(), 1);
    for (std::size_t k = 0; k < 3; ++k) {
      std::int64_t used = 1;
      for (std::size_t axis = 0; axis < logical.size(); ++axis) {
        taken[axis] *= assignment.taken[k][axis];
        used *= assignment.taken[k][axis];
      }
      EXPECT_EQ(used, physical[k]);
    }
    EXPECT_EQ(taken, logical);
    Layout layout = assignment.layout(physical);
    std::vector<std::int64_t> places(static_cast<std::size_t>(layout.size()));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    std::vector<std::int64_t> order = in_mesh_order(places, assignment, physical);
    for (std::int64_t i = 0; i < layout.size(); ++i)
      ASSERT_EQ(order[static_cast<std::size_t>(i)], layout(i));
    ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), places.begin(), places.end()));
  }
}

}  // namespace
}  // namespace meshard
