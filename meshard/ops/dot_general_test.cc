#include "meshard/ops/dot_general.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const DotDimensions kMatrices{.lhs_contracting = {1}, .rhs_contracting = {0}};

TEST(DotGeneral, Types) {
  EXPECT_EQ(dot_general(input({2, 3}), input({3, 4}), kMatrices).shape(), (Shape{2, 4}));
  Tensor y = dot_general(
      input({2, 4, 8, 3}), input({8, 3, 5, 4}),
      {.lhs_contracting = {-1}, .rhs_contracting = {1}, .lhs_batch = {2, 1}, .rhs_batch = {0, 3}});
  EXPECT_EQ(y.shape(), (Shape{8, 4, 2, 5}));
  EXPECT_EQ(dot_general(input({2, 3}, DType::i8), input({3, 4}, DType::i8), kMatrices, DType::i32)
                .dtype(),
            DType::i32);
  EXPECT_EQ(dot_general(input({2, 3}, DType::bf16), input({3, 4}), kMatrices).dtype(), DType::f32);
}

TEST(DotGeneral, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        dot_general(input({4, 8}), input({6, 3}), kMatrices);
      },
      ErrorCode::kInvalidArgument,
      {"dot_general_test.cc:",
       "[dot_general] contracting sizes differ: lhs dimension 1 = 8, rhs "
       "dimension 0 = 6"}));
  EXPECT_TRUE(throws_error(
      [] {
        dot_general(input({4, 8}), input({8, 3}), {.lhs_contracting = {1}});
      },
      ErrorCode::kInvalidArgument, {"lhs names 1 contracting dimensions, but rhs names 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        dot_general(
            input({4, 4}), input({4, 4}),
            {.lhs_contracting = {1}, .rhs_contracting = {0}, .lhs_batch = {1}, .rhs_batch = {1}});
      },
      ErrorCode::kInvalidArgument, {"lhs dimension 1 is named twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        dot_general(input({4, 8}), input({8, 3}), kMatrices, DType::i32);
      },
      ErrorCode::kInvalidArgument, {"f32", "i32"}));
}

TEST(DotGeneral, EmitsAndRule) {
  Tensor y = dot_general(
      input({4, 2, 8}), input({4, 8, 3}),
      {.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.dot_general\"(%arg0, %arg1) <{dot_dimension_numbers = "
            "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
            "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : "
            "(tensor<4x2x8xf32>, tensor<4x8x3xf32>) -> tensor<4x2x3xf32>");
  EXPECT_EQ(rule_of(y), "([i, j, l], [i, l, k])->([i, j, k]) {i=4, j=2, k=3, l=8} reduction={l}");
}

// Values from JAX 0.10, with both axes explicit.
TEST(DotGeneral, ExplicitBatchDimensionsLieAsTheLeftOperands) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 4, AxisKind::kExplicit}});
  internal::TraceScope trace;
  auto result = [&](PartitionSpec left, PartitionSpec right) {
    Tensor a = make_parameter({DType::f32, {4, 8, 16}}, Sharding(mesh, left, 3), {});
    Tensor b = make_parameter({DType::f32, {4, 16, 32}}, Sharding(mesh, right, 3), {});
    return dot_general(
               a, b,
               {.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}})
        .sharding()
        ->spec();
  };
  EXPECT_EQ(result(P("x"), P(none)), P("x", none, none));
  EXPECT_EQ(result(P(none), P("x")), P(none, none, none));
  EXPECT_EQ(result(P(none), P("x", none, "y")), P(none, none, "y"));
  EXPECT_EQ(result(P(none, "x"), P("x")), P(none, "x", none));
  EXPECT_THROW(result(P("y"), P("x")), Error);
}

}  // namespace
}  // namespace meshard
