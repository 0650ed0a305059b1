#include "meshard/plan/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "meshard/sharding/sharding.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using testing::ElementsAre;

TEST(MeshShapes, AllOfThemOnce) {
  EXPECT_THAT(mesh_shapes(4, 2),
              ElementsAre(ElementsAre(1, 4), ElementsAre(2, 2), ElementsAre(4, 1)));
  EXPECT_THAT(mesh_shapes(7, 1), ElementsAre(ElementsAre(7)));
  // Stars and bars: 2^8 over 3 axes has C(10, 2) shapes, and a factor of 3 has C(3, 2) places.
  EXPECT_EQ(mesh_shapes(256, 3).size(), 45u);
  EXPECT_EQ(mesh_shapes(256 * 3, 3).size(), 45u * 3);
  for (std::int64_t devices : {1, 6, 12, 48}) {
    std::set<std::vector<std::int64_t>> seen;
    for (const std::vector<std::int64_t>& sizes : mesh_shapes(devices, 3)) {
      EXPECT_EQ(sizes[0] * sizes[1] * sizes[2], devices);
      EXPECT_TRUE(seen.insert(sizes).second);
    }
  }
  EXPECT_TRUE(throws_error([] { mesh_shapes(0, 2); }, ErrorCode::kInvalidArgument, {"0 devices"}));
}

TEST(SpecCandidates, AxesGoToOpenDimensionsThatTheyDivide) {
  FreeValue value{"w", {DType::f32, Shape{4, 6}}, P(unconstrained, unconstrained)};
  std::vector<PartitionSpec> found =
      spec_candidates(value, {{.name = "x", .size = 2}, {.name = "y", .size = 4}});
  // x splits no dimension, 0 or 1; y splits none or 0 (6 is not divisible by 4). They cannot both
  // split 0, which is not divisible by 8.
  EXPECT_THAT(found, testing::UnorderedElementsAre(P(none, none), P("x", none), P(none, "x"),
                                                   P("y", none), P("y", "x")));
}

TEST(SpecCandidates, WhatIsGivenStays) {
  std::vector<MeshAxis> axes = {{.name = "x", .size = 2}, {.name = "y", .size = 2}};
  FreeValue value{"w", {DType::f32, Shape{8, 8}}, P(DimensionSpec({"y"}, true), none)};
  EXPECT_THAT(spec_candidates(value, axes),
              ElementsAre(P("y", none), P(meshard::axes("y", "x"), none)));
  value.spec = P("x", "y");
  EXPECT_THAT(spec_candidates(value, axes), ElementsAre(P("x", "y")));
  value.type.shape = Shape{3, 8};
  EXPECT_TRUE(spec_candidates(value, axes).empty());
  value.spec = P("z");
  EXPECT_TRUE(throws_error([&] { spec_candidates(value, axes); }, ErrorCode::kInvalidArgument,
                           {"axis \"z\"", "x, y"}));
}

// Every candidate is a valid, even and closed sharding, and occurs once.
TEST(SpecCandidates, RandomOnesAreValid) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    std::vector<MeshAxis> axes;
    for (std::int64_t i = random.between(1, 3); i > 0; --i)
      axes.push_back({.name = "a" + std::to_string(i), .size = random.between(1, 4)});
    std::vector<std::int64_t> sizes;
    std::vector<DimensionSpec> open_or_not;
    for (std::int64_t i = random.between(1, 3); i > 0; --i) {
      sizes.push_back(random.between(1, 24));
      open_or_not.push_back(random.between(0, 3) == 0 ? DimensionSpec()
                                                      : DimensionSpec(unconstrained));
    }
    FreeValue value{"v", {DType::f32, Shape(sizes)}, PartitionSpec(open_or_not)};
    std::vector<PartitionSpec> found = spec_candidates(value, axes);
    EXPECT_FALSE(found.empty());
    std::set<std::string> seen;
    for (const PartitionSpec& spec : found) {
      EXPECT_TRUE(seen.insert(spec.to_string()).second) << spec.to_string();
      Sharding sharding(Mesh(axes), spec, sizes.size());
      EXPECT_TRUE(sharding.is_even(sizes)) << spec.to_string();
      for (std::size_t d = 0; d < sizes.size(); ++d)
        EXPECT_FALSE(sharding.is_open(d) || (!open_or_not[d].is_open() && !spec[d].axes().empty()));
      std::int64_t shard = value.type.bytes() / sharding.num_tiles();
      EXPECT_EQ(shard_bytes(spec, value.type, axes), static_cast<double>(shard));
    }
  }
}

TEST(PlanCandidate, OneLine) {
  PlanCandidate one{{{.name = "data", .size = 4}, {.name = "model", .size = 2}},
                    {P("data", none), P(none, "model")}};
  EXPECT_EQ(one.to_string(), "data=4,model=2; P(\"data\", none); P(none, \"model\")");
}

}  // namespace
}  // namespace meshard
