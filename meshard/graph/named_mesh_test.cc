#include "meshard/graph/named_mesh.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

constinit const OpDef mark_op = {.name = "mark", .operands = "x", .infer = test::infer_first};

Tensor pair_on_host() { return from_host(std::vector<float>{1, 2}, {2}); }
Tensor marked_x(In x) {
  return record(mark_op, make_attributes(ShardingMark{Sharding(Mesh({{"x", 2}}), P("x"))}),
                {x.tensor}, x.where);
}

TEST(NamedMesh, IsThatOfAMark) {
  Tensor x = pair_on_host();
  EXPECT_EQ(named_mesh(*plus(x, x).value().node()), nullptr);
  ASSERT_NE(named_mesh(*marked_x(x).value().node()), nullptr);
  EXPECT_EQ(*named_mesh(*marked_x(x).value().node()), Mesh({{"x", 2}}));
}

TEST(DependsOnPlaced, FollowsOperands) {
  Tensor x = pair_on_host(), sum = plus(x, scale(x, 2));
  EXPECT_FALSE(depends_on_placed(x.value()));
  EXPECT_FALSE(depends_on_placed(sum.value()));
  EXPECT_TRUE(depends_on_placed(marked_x(sum).value()));
  Tensor after = plus(sum, scale(marked_x(x), 3));
  EXPECT_TRUE(depends_on_placed(after.value()));
  after.value()->set_unplaced();
  EXPECT_FALSE(depends_on_placed(after.value()));
  EXPECT_FALSE(depends_on_placed(plus(after, x).value()));
}

TEST(Unplaced, HostDataAndParametersThatSayNothing) {
  EXPECT_TRUE(is_unplaced(pair_on_host().value()));
  internal::TraceScope trace;
  Sharding sharding(Mesh({{"x", 2}}), P("x"));
  EXPECT_TRUE(is_unplaced(make_parameter({DType::f32, {2}}, std::nullopt, {}).value()));
  Tensor placed = make_parameter({DType::f32, {2}}, sharding, {});
  EXPECT_FALSE(is_unplaced(placed.value()));
  EXPECT_EQ(placed.sharding(), sharding);
  placed.value()->set_unplaced();
  EXPECT_TRUE(is_unplaced(placed.value()));
  EXPECT_FALSE(placed.sharding());
}

}  // namespace
}  // namespace meshard
