#include "meshard/explain/cost/flops.h"

#include <gtest/gtest.h>

#include <random>

#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

OperationCount count_of_last(std::vector<HloInstruction> instructions) {
  HloModule module = make_module({std::move(instructions)});
  InstructionIndex index(module.entry());
  return operations_of(index, module.entry().instructions.back());
}

TEST(Flops, ADotHasTwoForEachTerm) {
  HloInstruction dot = make_instruction(3, "dot", f32_shape({8, 64, 32}), {1, 2});
  dot.dot = HloDotDimensions{{2}, {1}, {0}, {0}};
  OperationCount count = count_of_last({make_parameter(1, 0, f32_shape({8, 64, 128})),
                                        make_parameter(2, 1, f32_shape({8, 128, 32})), dot});
  EXPECT_EQ(count.matrix, 2.0 * 8 * 64 * 32 * 128);
  EXPECT_EQ(count.other, 0);
}

TEST(Flops, ElementsOfElementWiseOperations) {
  auto one = [](std::string opcode) {
    return count_of_last({make_parameter(1, 0, f32_shape({3, 5})),
                          make_instruction(2, std::move(opcode), f32_shape({3, 5}), {1})});
  };
  EXPECT_EQ(one("add"), (OperationCount{.other = 15}));
  EXPECT_EQ(one("tanh"), (OperationCount{.transcendentals = 15}));
  EXPECT_EQ(one("copy"), OperationCount());
  EXPECT_EQ(one("transpose"), OperationCount());
}

// Counts the pairs of one dimension by trying every pair.
double pairs_by_hand(const HloWindowDimension& window, std::int64_t input, std::int64_t output) {
  double pairs = 0;
  for (std::int64_t o = 0; o < output; ++o)
    for (std::int64_t k = 0; k < window.size; ++k) {
      std::int64_t at = o * window.stride - window.padding_low + k * window.window_dilation;
      if (at < 0 || at % window.base_dilation != 0 || at / window.base_dilation >= input) continue;
      ++pairs;
    }
  return pairs;
}

TEST(Flops, AConvolutionsPaddingAndHolesDoNotCount) {
  std::mt19937 random(7);
  auto draw = [&](int from, int to) {
    return static_cast<std::int64_t>(std::uniform_int_distribution<int>(from, to)(random));
  };
  for (int i = 0; i < 2000; ++i) {
    HloWindowDimension window{.size = draw(1, 6),
                              .stride = draw(1, 3),
                              .padding_low = draw(-1, 5),
                              .padding_high = 0,
                              .window_dilation = draw(1, 3),
                              .base_dilation = draw(1, 3)};
    std::int64_t input = draw(1, 8), output = draw(1, 9);
    HloInstruction one = make_instruction(3, "convolution", f32_shape({2, output, 5}), {1, 2});
    one.convolution = HloConvolutionDimensions{.input_batch = 0,
                                               .input_feature = 2,
                                               .kernel_input_feature = 1,
                                               .kernel_output_feature = 2,
                                               .output_batch = 0,
                                               .output_feature = 2,
                                               .input_spatial = {1},
                                               .kernel_spatial = {0},
                                               .output_spatial = {1}};
    one.window = {window};
    OperationCount count =
        count_of_last({make_parameter(1, 0, f32_shape({2, input, 3})),
                       make_parameter(2, 1, f32_shape({window.size, 3, 5})), one});
    ASSERT_EQ(count.matrix, 2 * pairs_by_hand(window, input, output) * 2 * 3 * 5)
        << window.size << " stride " << window.stride << " pad " << window.padding_low
        << " dilation " << window.window_dilation << " base " << window.base_dilation << " in "
        << input << " out " << output;
  }
}

TEST(Flops, LibraryProducts) {
  HloInstruction gemm = make_instruction(
      3, "custom-call", tuple_shape({f32_shape({64, 32}), f32_shape({100})}), {1, 2});
  gemm.custom_call_target = "__cublas$gemm";
  gemm.backend_config =
      R"({"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],)"
      R"("rhs_contracting_dimensions":["0"]}}})";
  EXPECT_EQ(count_of_last({make_parameter(1, 0, f32_shape({64, 128})),
                           make_parameter(2, 1, f32_shape({128, 32})), gemm})
                .matrix,
            2.0 * 64 * 128 * 32);
  gemm.custom_call_target = "Sharding";
  EXPECT_EQ(count_of_last({make_parameter(1, 0, f32_shape({64, 128})),
                           make_parameter(2, 1, f32_shape({128, 32})), gemm}),
            OperationCount());
}

TEST(Flops, ApplicationsOfReductions) {
  auto applied = [](HloInstruction one, std::vector<std::int64_t> input) {
    HloModule module = make_module({{make_parameter(1, 0, f32_shape(std::move(input))), one}});
    InstructionIndex index(module.entry());
    return applications_of(index, module.entry().instructions.back());
  };
  EXPECT_EQ(applied(make_instruction(2, "reduce", f32_shape({4}), {1}), {4, 10}), 36);
  EXPECT_EQ(applied(make_instruction(2, "sort", f32_shape({8}), {1}), {8}), 24);
  HloInstruction window = make_instruction(2, "reduce-window", f32_shape({8}), {1});
  window.window = {{.size = 3, .padding_low = 1, .padding_high = 1}};
  EXPECT_EQ(applied(window, {8}), 8 * 2);
  // Every window covers all eight elements: one sum, used everywhere.
  window.window = {{.size = 15, .padding_low = 7, .padding_high = 7}};
  EXPECT_EQ(applied(window, {8}), 7);
}

TEST(Flops, DamagedShapesAndWindowsAreHarmless) {
  HloInstruction one = make_instruction(3, "convolution", f32_shape({2, 3, 5}), {1, 2});
  one.convolution = HloConvolutionDimensions{
      .input_spatial = {-1, 99}, .kernel_spatial = {}, .output_spatial = {7}};
  one.window = {
      {.size = INT64_MAX, .stride = 0, .window_dilation = -4, .base_dilation = INT64_MAX}};
  EXPECT_GE(
      count_of_last({make_parameter(1, 0, f32_shape({})), make_parameter(2, 1, f32_shape({})), one})
          .matrix,
      0);
}

TEST(Flops, TheTypeComputedInIsTheOperands) {
  HloModule module = make_module({{make_parameter(1, 0, array_shape(pjrt::ElementType::kBf16, {4})),
                                   make_instruction(2, "dot", f32_shape({4}), {1, 1}),
                                   make_instruction(3, "constant", f32_shape({4}))}});
  InstructionIndex index(module.entry());
  EXPECT_EQ(computed_type(index, *index.find(2)), pjrt::ElementType::kBf16);
  EXPECT_EQ(computed_type(index, *index.find(3)), pjrt::ElementType::kF32);
}

}  // namespace
}  // namespace meshard
