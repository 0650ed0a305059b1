#include "meshard/graph/sharding_mark.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

constinit const OpDef constraint_op = {.name = "mark", .operands = "x", .infer = test::infer_first};

TEST(ShardingMark, IsFoundOnItsNodeOnly) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Sharding sharding(Mesh({{"x", 2}}), P("x"));
  Tensor marked = record(constraint_op, make_attributes(ShardingMark{sharding}), {&x}, {});
  EXPECT_EQ(marked_sharding(marked.value()), sharding);
  EXPECT_EQ(marked.sharding(), sharding);
  EXPECT_FALSE(marked_sharding(x.value()).has_value());
  EXPECT_FALSE(test::scale(marked, 2).sharding().has_value());
}

}  // namespace
}  // namespace meshard
