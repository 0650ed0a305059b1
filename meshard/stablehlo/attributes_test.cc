#include <gtest/gtest.h>

#include "meshard/stablehlo/module_writer.h"

namespace meshard::stablehlo {
namespace {

template <class T>
std::string text(const T& numbers) {
  std::string out;
  append_attribute(out, numbers);
  return out;
}

// The forms that the specification's examples use.
TEST(Attributes, Dot) {
  EXPECT_EQ(text(DotDimensions{{2}, {1}, {0}, {0}}),
            "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
            "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>");
  EXPECT_EQ(
      text(DotDimensions{{1, 2}, {0, 1}}),
      "#stablehlo.dot<lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1]>");
  EXPECT_EQ(text(DotDimensions{}), "#stablehlo.dot<>");
}

TEST(Attributes, Gather) {
  EXPECT_EQ(text(GatherDimensions{{3, 4}, {1}, {0}, {1}, {2, 1}, 3}),
            "#stablehlo.gather<offset_dims = [3, 4], collapsed_slice_dims = [1], "
            "operand_batching_dims = [0], start_indices_batching_dims = [1], "
            "start_index_map = [2, 1], index_vector_dim = 3>");
  EXPECT_EQ(text(GatherDimensions{}), "#stablehlo.gather<index_vector_dim = 0>");
}

TEST(Attributes, Scatter) {
  EXPECT_EQ(text(ScatterDimensions{{3, 4}, {1}, {0}, {1}, {2, 1}, 3}),
            "#stablehlo.scatter<update_window_dims = [3, 4], inserted_window_dims = [1], "
            "input_batching_dims = [0], scatter_indices_batching_dims = [1], "
            "scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 3>");
}

TEST(Attributes, Convolution) {
  EXPECT_EQ(text(ConvolutionDimensionNumbers{0, 3, {1, 2}, 3, 2, {0, 1}, 0, 3, {1, 2}}),
            "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>");
  EXPECT_EQ(text(ConvolutionDimensionNumbers{0, 1, {3, 2}, 0, 1, {2, 3}, 0, 1, {2, 3}}),
            "#stablehlo.conv<[b, f, 1, 0]x[o, i, 0, 1]->[b, f, 0, 1]>");
}

}  // namespace
}  // namespace meshard::stablehlo
