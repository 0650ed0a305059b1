#include "meshard/ops/internal/single_row.h"

#include <gmock/gmock.h>

#include "meshard/ops/dot_general.h"
#include "meshard/ops/op_testutil.h"
#include "meshard/ops/scatter.h"
#include "tests/support/emitted.h"

namespace meshard::internal {
namespace {

const DotDimensions kMatrices{.lhs_contracting = {1}, .rhs_contracting = {0}};

// The types of the operands and the result of the product that is written; empty: the op is written
// as for any compiler.
std::string product_of(const Tensor& product) {
  std::string text = emitted(product, quirks_of_table("cpu"));
  if (text == emitted(product)) return "";
  std::size_t from = text.find(" : (", text.find("stablehlo.dot_general")) + 3;
  return text.substr(from, text.find('\n', from) - from);
}

TEST(SingleRow, IsRepeatedBesideAnArrayOfMoreThanTwoDimensions) {
  Tensor row = input({1, 8}), heads = input({8, 4, 2});
  EXPECT_EQ(product_of(dot_general(row, heads, kMatrices)),
            "(tensor<2x8xf32>, tensor<8x4x2xf32>) -> tensor<2x4x2xf32>");
  EXPECT_EQ(product_of(dot_general(heads, row, {.lhs_contracting = {0}, .rhs_contracting = {1}})),
            "(tensor<2x8xf32>, tensor<8x4x2xf32>) -> tensor<2x4x2xf32>");
  EXPECT_EQ(product_of(dot_general(input({1, 1, 4, 2}), input({4, 2, 16}),
                                   {.lhs_contracting = {2, 3}, .rhs_contracting = {0, 1}})),
            "(tensor<2x4x2xf32>, tensor<4x2x16xf32>) -> tensor<2x16xf32>");
}

TEST(SingleRow, IsNotRepeatedWhereXlaHasAGoodProduct) {
  Tensor row = input({1, 8});
  EXPECT_EQ(product_of(dot_general(row, input({8, 16}), kMatrices)), "");
  EXPECT_EQ(product_of(dot_general(row, input({8, 1, 16}), kMatrices)), "");
  EXPECT_EQ(product_of(dot_general(input({2, 8}), input({8, 4, 2}), kMatrices)), "");
  EXPECT_EQ(product_of(dot_general(input({8}), input({8}),
                                   {.lhs_contracting = {0}, .rhs_contracting = {0}})),
            "");
  // From 16 KiB on, XLA does not fuse.
  EXPECT_EQ(product_of(dot_general(input({1, 4096}), input({4096, 2, 2}), kMatrices)), "");
  EXPECT_NE(product_of(dot_general(input({1, 4095}), input({4095, 2, 2}), kMatrices)), "");
  Tensor integers = input({1, 8}, DType::i32);
  EXPECT_EQ(product_of(dot_general(integers, input({8, 4, 2}, DType::i32), kMatrices)), "");
}

TEST(SingleRow, BatchDimensionsOfSizeOneAreLeftOut) {
  DotDimensions batches{
      .lhs_contracting = {3}, .rhs_contracting = {3}, .lhs_batch = {0, 1}, .rhs_batch = {0, 1}};
  EXPECT_EQ(product_of(dot_general(input({1, 4, 1, 8}), input({1, 4, 16, 8}), batches)),
            "(tensor<4x8xf32>, tensor<4x16x8xf32>) -> tensor<4x16xf32>");
  EXPECT_EQ(product_of(dot_general(input({1, 4, 3, 8}), input({1, 4, 16, 8}), batches)),
            "(tensor<4x3x8xf32>, tensor<4x16x8xf32>) -> tensor<4x3x16xf32>");
  EXPECT_EQ(product_of(dot_general(input({2, 4, 1, 8}), input({2, 4, 16, 8}), batches)), "");
}

TEST(SingleRow, AWindowIsWrittenTwice) {
  ScatterDimensions dims{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  auto set = [&](std::int64_t windows) {
    return scatter_set(input({8, 4}), input({windows}, DType::i32), input({windows, 4}), dims,
                       /*indices_are_sorted=*/true, /*unique_indices=*/true);
  };
  std::string text = emitted(set(1), quirks_of_table("cpu"));
  EXPECT_THAT(text, testing::HasSubstr("(tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>)"));
  EXPECT_THAT(text, testing::HasSubstr("update_window_dims = [2]"));
  EXPECT_THAT(text, testing::HasSubstr("unique_indices = false"));
  EXPECT_THAT(emitted(set(1)), testing::HasSubstr("unique_indices = true"));
  EXPECT_EQ(emitted(set(2), quirks_of_table("cpu")), emitted(set(2)));
}

}  // namespace
}  // namespace meshard::internal
