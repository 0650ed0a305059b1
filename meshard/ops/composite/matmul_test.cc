#include "meshard/ops/composite/matmul.h"

#include <gtest/gtest.h>

#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Shape product(Shape a, Shape b) { return matmul(input(a), input(b)).shape(); }

TEST(Matmul, ShapesAsInTheArrayApi) {
  EXPECT_EQ(product({4}, {4}), Shape{});
  EXPECT_EQ(product({3, 4}, {4}), Shape{3});
  EXPECT_EQ(product({4}, {4, 5}), Shape{5});
  EXPECT_EQ(product({3, 4}, {4, 5}), (Shape{3, 5}));
  EXPECT_EQ(product({2, 3, 4}, {4, 5}), (Shape{2, 3, 5}));
  EXPECT_EQ(product({3, 4}, {2, 4, 5}), (Shape{2, 3, 5}));
  EXPECT_EQ(product({7, 1, 3, 4}, {6, 4, 5}), (Shape{7, 6, 3, 5}));
  EXPECT_EQ(product({4}, {6, 4, 5}), (Shape{6, 5}));
  EXPECT_EQ(product({0, 3, 4}, {1, 4, 5}), (Shape{0, 3, 5}));
  EXPECT_EQ(matmul(input({3, 4}, DType::bf16), input({4, 5})).dtype(), DType::f32);
}

TEST(Matmul, OfMatricesIsOneDotGeneral) {
  Tensor y = matmul(input({3, 4}), input({4, 5}));
  EXPECT_EQ(y.value()->op().name, "dot_general");
  EXPECT_EQ(y.value()->operands()[0]->op().name, "array");
}

TEST(Matmul, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        product({3, 4}, {5, 6});
      },
      ErrorCode::kInvalidArgument,
      {"[matmul]", "f32[3,4] dimension 1 = 4", "f32[5,6] dimension 0 = 5"}));
  EXPECT_TRUE(throws_error(
      [] {
        product({2, 3, 4}, {3, 4, 6});
      },
      ErrorCode::kInvalidArgument, {"dimension 0 = 2", "dimension 0 = 3"}));
  EXPECT_TRUE(throws_error(
      [] {
        product({3, 1}, {4, 6});
      },
      ErrorCode::kInvalidArgument, {"= 1", "= 4"}));
  EXPECT_TRUE(throws_error([] { product({}, {4}); }, ErrorCode::kInvalidArgument, {"scalars"}));
}

TEST(Matmul, TensordotAndOuter) {
  EXPECT_EQ(tensordot(input({2, 3, 4}), input({3, 4, 5})).shape(), (Shape{2, 5}));
  EXPECT_EQ(tensordot(input({2, 3}), input({4}), 0).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(tensordot(input({2, 3, 4}), input({4, 2}), {0, 2}, {1, 0}).shape(), Shape{3});
  EXPECT_EQ(outer(input({2}), input({3})).shape(), (Shape{2, 3}));
  EXPECT_TRUE(throws_error(
      [] {
        tensordot(input({2}), input({2, 2}), 2);
      },
      ErrorCode::kInvalidArgument, {"2 dimensions", "lhs has rank 1"}));
  EXPECT_TRUE(throws_error(
      [] {
        outer(input({2, 2}), input({3}));
      },
      ErrorCode::kInvalidArgument, {"[outer]", "f32[2,2]"}));
}

// Values and derivatives are tested with golden/txla/linear.json.

TEST(Linear, LeadingDimensionsStay) {
  EXPECT_EQ(linear(input({2, 3, 4}), input({5, 4}), input({5})).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(linear(input({4}), input({5, 4})).shape(), Shape{5});
  Tensor y = linear(input({2, 3, 4}), input({5, 4}));
  EXPECT_EQ(y.value()->op().name, "dot_general") << "and no reshape";
}

TEST(Linear, TheWeightsCotangentIsOneContraction) {
  std::vector<Tensor> cotangents =
      recorded_vjp(linear(input({2, 3, 4}), input({5, 4})), input({2, 3, 5}));
  const Node& node = *cotangents[1].value().node();
  EXPECT_EQ(node.op().name, "dot_general");
  EXPECT_EQ(node.attributes_as<DotGeneralAttributes>().lhs_contracting, (Dimensions{0, 1}));
  EXPECT_EQ(cotangents[1].shape(), (Shape{5, 4}));
}

TEST(Linear, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        linear(input({2, 4}), input({5, 3}));
      },
      invalid, {"matmul_test.cc:", "f32[2,4]", "f32[5,3]"}));
  EXPECT_TRUE(throws_error([] { linear(input({}), input({5, 3})); }, invalid, {"f32[]"}));
  EXPECT_TRUE(throws_error(
      [] {
        linear(input({2, 4}), input({5, 4}), input({4}));
      },
      invalid, {"out = 5", "f32[4]"}));
}

}  // namespace
}  // namespace meshard
