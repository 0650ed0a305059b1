#include "meshard/lowering/internal/partitioner_needs.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

const Mesh kEight({{"a", 8}});
const QuirkSet kAll = quirks_of_table("");
const Mesh kSquare({{"a", 2}, {"b", 4}});

Tensor whole_data(Shape shape, DType dtype = DType::f32) {
  return from_host(HostArray::zeros({dtype, std::move(shape)}));
}

struct WholeParts {
  std::optional<Sharding> input, kernel, result;
};
WholeParts whole_parts(const Tensor& y, const Mesh& mesh = kEight) {
  const Node& node = *y.value().node();
  return {whole_operand(node, 0, mesh, kAll), whole_operand(node, 1, mesh, kAll),
          whole_result(node, mesh, kAll)};
}

TEST(WholeDimensions, OfPlainConvolutionsAreThoseOfTheKernel) {
  WholeParts parts = whole_parts(convolution(whole_data({4, 9, 2}), whole_data({3, 2, 4})));
  EXPECT_FALSE(parts.input);
  EXPECT_EQ(parts.kernel, Sharding(kEight, P(none, unconstrained, unconstrained)));
  EXPECT_FALSE(parts.result);
  // A kernel as large as a cotangent, which is the kernel of a derivative, may be split.
  EXPECT_FALSE(whole_parts(convolution(whole_data({2, 9, 4}), whole_data({8, 4, 2}))).kernel);
}

// Spatial dimensions over one axis and the kernel's features over another are not split together.
TEST(WholeDimensions, OverSeveralAxesAreSpaceOrTheKernel) {
  Sharding middle(kSquare, P(unconstrained, none, unconstrained));
  Tensor x = whole_data({4, 8, 2}), kernel = whole_data({3, 2, 4});
  WholeParts unsaid = whole_parts(convolution(x, kernel), kSquare);
  EXPECT_EQ(unsaid.input, middle);
  EXPECT_EQ(unsaid.kernel, Sharding(kSquare, P(none, unconstrained, unconstrained)));
  EXPECT_EQ(unsaid.result, middle);
  Tensor marked = sharding_constraint(x, Sharding(kSquare, P("a", "b")));
  WholeParts said = whole_parts(convolution(add(marked, marked), kernel), kSquare);
  EXPECT_FALSE(said.input);
  EXPECT_EQ(said.kernel, Sharding(kSquare, P(none, none, none)));
  EXPECT_FALSE(said.result);
}

TEST(WholeDimensions, OfDilatedInputsAreAllSpatialOnes) {
  Sharding middle(kEight, P(unconstrained, none, unconstrained));
  WholeParts parts = whole_parts(
      convolution(whole_data({4, 8, 2}), whole_data({8, 2, 4}), {.input_dilation = {2}}));
  EXPECT_EQ(parts.input, middle);
  EXPECT_EQ(parts.kernel, Sharding(kEight, P(none, unconstrained, unconstrained)));
  EXPECT_EQ(parts.result, middle);
}

TEST(WholeDimensions, OfStepsAreThoseThatAreUneven) {
  Sharding middle(kEight, P(unconstrained, none, unconstrained));
  auto strided = [](std::int64_t size) {
    return whole_parts(
        convolution(whole_data({4, size, 2}), whole_data({2, 2, 4}), {.strides = {2}}));
  };
  EXPECT_FALSE(strided(16).input);
  EXPECT_FALSE(strided(16).result);
  EXPECT_EQ(strided(15).input, middle);
  EXPECT_EQ(strided(15).result, middle);
}

TEST(WholeDimensions, OfGroupsAreAllUnlessEachDeviceHasWholeOnes) {
  Sharding all(kEight, P(none, none, none));
  WholeParts parts =
      whole_parts(convolution(whole_data({4, 9, 4}), whole_data({3, 2, 4}), {.feature_groups = 2}));
  EXPECT_EQ(parts.input, all);
  EXPECT_EQ(parts.kernel, all);
  EXPECT_EQ(parts.result, all);
  EXPECT_FALSE(
      whole_parts(convolution(whole_data({4, 9, 8}), whole_data({3, 1, 16}), {.feature_groups = 8}))
          .input);
}

// Gathers `count` rows of a matrix, by indices without a dimension for their one component.
Tensor rows_of(const Tensor& matrix, std::int64_t count) {
  return gather(matrix, whole_data({count}, DType::i32),
                {.offset_dims = {1},
                 .collapsed_slice_dims = {0},
                 .start_index_map = {0},
                 .index_vector_dim = 1},
                {1, matrix.dim(1)});
}

TEST(WholeDimensions, OfIndicesAreTheirComponents) {
  Tensor x = whole_data({5, 2}), indices = whole_data({8, 2}, DType::i32);
  Tensor slices =
      gather(x, indices, {.offset_dims = {1, 2}, .start_index_map = {0, 1}, .index_vector_dim = 1},
             {3, 1});
  Sharding components(kEight, P(unconstrained, none));
  EXPECT_FALSE(whole_operand(*slices.value().node(), 0, kEight, kAll));
  EXPECT_EQ(whole_operand(*slices.value().node(), 1, kEight, kAll), components);
  Tensor added = scatter_add(x, indices, whole_data({8}),
                             {.inserted_window_dims = {0, 1},
                              .scatter_dims_to_operand_dims = {0, 1},
                              .index_vector_dim = 1},
                             false, false);
  EXPECT_EQ(whole_operand(*added.value().node(), 1, kEight, kAll), components);
  Tensor rows = rows_of(x, 8);
  EXPECT_FALSE(whole_operand(*rows.value().node(), 1, kEight, kAll));
  // An uneven number of indices into an operand that the compiler may split, that nobody may split,
  // and that is split.
  Mesh three({{"a", 3}});
  EXPECT_EQ(whole_operand(*rows.value().node(), 1, three, kAll), Sharding(three, P(none)));
  Tensor whole = sharding_constraint(whole_data({5, 6}), Sharding(three, P(none, none)));
  EXPECT_FALSE(whole_operand(*rows_of(whole, 8).value().node(), 1, three, kAll));
  Tensor split = sharding_constraint(whole_data({5, 6}), Sharding(three, P(none, "a")));
  Tensor taken = rows_of(split, 8);
  EXPECT_EQ(whole_operand(*taken.value().node(), 1, three, kAll), Sharding(three, P(none)));
}

TEST(WholeDimensions, OfPadsAreThoseWithGaps) {
  Sharding gaps(kEight, P(unconstrained, none));
  Tensor padded = pad(whole_data({8, 4}), 0, {1, 0}, {0, 2}, {0, 1});
  const Node& node = *padded.value().node();
  EXPECT_EQ(whole_operand(node, 0, kEight, kAll), gaps);
  EXPECT_FALSE(whole_operand(node, 1, kEight, kAll));
  EXPECT_EQ(whole_result(node, kEight, kAll), gaps);
}

TEST(WholeDimensions, OfTransformsAreTheTransformedOnes) {
  Tensor y = fft(whole_data({4, 2, 8}, DType::c64), FftKind::kFft, {2, 8});
  EXPECT_EQ(whole_operand(*y.value().node(), 0, kEight, kAll),
            Sharding(kEight, P(unconstrained, none, none)));
  EXPECT_FALSE(whole_result(*y.value().node(), kEight, kAll));
  Tensor sum = add(whole_data({3}), 1);
  EXPECT_FALSE(whole_operand(*sum.value().node(), 0, kEight, kAll)) << "another op";
}

const Mesh kFour({{"x", 2}, {"y", 2}});

Tensor scattered_data(Shape shape, DType dtype = DType::f32) {
  return from_host(HostArray::zeros({dtype, std::move(shape)}));
}

std::optional<Sharding> even_for_scatter(const Node& node, std::size_t operand, const Mesh& mesh) {
  return whole_operand(node, operand, mesh, QuirkSet().with(Quirk::kUnevenScatters));
}

// Adds rows of 3 to rows of an operand f32[9, 3].
Tensor rows_added(std::int64_t rows) {
  return scatter_add(scattered_data({9, 3}), scattered_data({rows, 1}, DType::i32),
                     scattered_data({rows, 3}),
                     {.update_window_dims = {1},
                      .inserted_window_dims = {0},
                      .scatter_dims_to_operand_dims = {0},
                      .index_vector_dim = 1});
}

TEST(ScatteredUpdates, StayWholeWhereTheirNumberIsNotDivided) {
  for (std::int64_t rows : {1, 2, 6}) {  // 2 is divisible by one axis, not by every choice
    Tensor y = rows_added(rows);
    const Node& node = *y.value().node();
    EXPECT_EQ(even_for_scatter(node, 1, kFour), Sharding(kFour, P(none, unconstrained))) << rows;
    EXPECT_EQ(even_for_scatter(node, 2, kFour), Sharding(kFour, P(none, unconstrained))) << rows;
    EXPECT_FALSE(even_for_scatter(node, 0, kFour)) << "the operand is padded where nothing goes";
  }
}

TEST(ScatteredUpdates, AreFreeWhereEveryChoiceOfAxesIsEven) {
  Tensor y = rows_added(8);
  EXPECT_FALSE(even_for_scatter(*y.value().node(), 1, kFour));
  EXPECT_FALSE(even_for_scatter(*y.value().node(), 2, kFour));
  Tensor sum = add(scattered_data({3}), 1);
  EXPECT_FALSE(even_for_scatter(*sum.value().node(), 1, kFour)) << "another op";
}

bool keeps_nothing(const Tensor& x) { return keeps_only_padding(*x.value().node()); }

TEST(OnlyPadding, IsASliceBesideThePaddedElements) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4, 3}}, std::nullopt, {});
  Tensor padded = pad(x, 1, {0, 2}, {3, 1}, {1, 0});  // rows 0, 2, 4, 6 of 10; columns 2 to 4 of 6
  EXPECT_TRUE(keeps_nothing(slice(padded, {7, 0}, {10, 6}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(slice(padded, {0, 0}, {10, 2}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(slice(padded, {0, 5}, {10, 6}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(slice(padded, {6, 0}, {10, 6}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(slice(padded, {0, 4}, {10, 6}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(pad(padded, 1, {0, -5}, {0, 0})));
  EXPECT_TRUE(keeps_nothing(pad(padded, 1, {0, 0}, {0, -4})));
  EXPECT_FALSE(keeps_nothing(pad(padded, 1, {0, -4}, {0, 3})));
  EXPECT_FALSE(keeps_nothing(slice(x, {0, 0}, {1, 1}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(padded));
}

}  // namespace
}  // namespace meshard
