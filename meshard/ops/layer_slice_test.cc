#include "meshard/ops/layer_slice.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(LayerSlice, HasTheShapeOfOneLayer) {
  EXPECT_EQ(layer_slice(input({12, 4, 5}), 11).shape(), (Shape{4, 5}));
  EXPECT_EQ(layer_slice(input({12}), 0).shape(), Shape{});
}

TEST(LayerSlice, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        layer_slice(input({4, 2}), 4);
      },
      ErrorCode::kInvalidArgument, {"layer_slice_test.cc:", "layer 4", "4 layers of f32[4,2]"}));
  EXPECT_TRUE(
      throws_error([] { layer_slice(input({4}), -1); }, ErrorCode::kInvalidArgument, {"layer -1"}));
  EXPECT_TRUE(throws_error([] { layer_slice(input({}), 0); }, ErrorCode::kInvalidArgument,
                           {"f32[]", "no dimension for the layers"}));
}

TEST(LayerSlice, EmitsAndRule) {
  Tensor y = layer_slice(input({8, 16}), 3);
  EXPECT_EQ(emitted(y),
            "%t0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 3, 0>, limit_indices = "
            "array<i64: 4, 16>, strides = array<i64: 1, 1>}> : (tensor<8x16xf32>) -> "
            "tensor<1x16xf32>\n"
            "%0 = \"stablehlo.reshape\"(%t0) : (tensor<1x16xf32>) -> tensor<16xf32>");
  EXPECT_EQ(rule_of(y), "([i, j])->([j]) {i=8, j=16} need_replication={i}");
}

}  // namespace
}  // namespace meshard
