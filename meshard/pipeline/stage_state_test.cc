#include <gtest/gtest.h>

#include "meshard/pipeline/stage_programs.h"

namespace meshard::internal {
namespace {

TEST(StagePlacement, KeepsTheAxesOfTheSameNames) {
  Mesh wide({{"data", 4}, {"model", 2}}),
      other({{"data", 4}, {"expert", 2}}, {8, 9, 10, 11, 12, 13, 14, 15});
  const auto like = [&](const PartitionSpec& spec, Shape shape) {
    return like_sharding(Sharding(wide, spec), other, shape).spec();
  };
  EXPECT_EQ(like(P("data", "model"), {8, 8}), P("data", none));
  EXPECT_EQ(like(P(none, "data"), {8, 6}), P(none, none));  // 4 does not divide 6
  EXPECT_EQ(like(P(axes("model", "data")), {8}), P(none));
  EXPECT_EQ(like(P(axes("data", "model")), {8}), P("data"));
  EXPECT_EQ(like(P(AxisRef("data", 1, 2)), {8}), P(none));
  EXPECT_EQ(like_sharding(std::nullopt, other, {8, 8}).spec(), P(none, none));
  EXPECT_EQ(like_sharding(std::nullopt, other, {}).rank(), 0u);
}

}  // namespace
}  // namespace meshard::internal
