#include "meshard/plan/module_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"
#include "meshard/plan/internal/flow_ops.h"

namespace meshard {
namespace {

const std::vector<MeshAxis> kFlowAxes = {{.name = "x", .size = 2}, {.name = "y", .size = 4}};

double flow_bytes(const std::string& body, const std::vector<std::optional<PartitionSpec>>& specs,
                  const std::vector<std::optional<PartitionSpec>>& results = {}) {
  std::string text = cat("module @m {\n", body, "}\n");
  return ModuleFlow::parse(text).value().communication(kFlowAxes, specs, results);
}

constexpr const char* kProduct =
    R"(  func.func public @main(%arg0: tensor<16x32xf32> loc("a"), %arg1: tensor<32x64xf32>) -> (tensor<16x64xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> loc(#loc3)
    return %0 : tensor<16x64xf32>
  }
)";

// One product, for which every partitioner inserts the same collectives.
TEST(ModuleFlow, OneProduct) {
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P(none, "y")}), 0);
  // Both contracted dimensions are split: the result is all-reduced.
  EXPECT_EQ(flow_bytes(kProduct, {P(none, "y"), P("y", none)}), 16 * 64 * 4);
  EXPECT_EQ(flow_bytes(kProduct, {P("x", "y"), P("y", none)}), 8 * 64 * 4);
  // Only one contracted dimension is split: the other operand is split at no cost.
  EXPECT_EQ(flow_bytes(kProduct, {P(none, "y"), P()}), 16 * 64 * 4);
  // x splits the left operand's rows and the right operand's contracted dimension: the smaller
  // shard, 16 / 2 rows of 32, is gathered; then the result is all-reduced.
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P("x", none)}), 16 * 32 * 4 + 16 * 64 * 4);
  // x splits a free dimension of both operands: the smaller shard is gathered.
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P(none, "x")}), 16 * 32 * 4);
  // The result must be replicated.
  EXPECT_EQ(flow_bytes(kProduct, {P("x"), P()}, {P()}), 16 * 64 * 4);
  EXPECT_EQ(flow_bytes(kProduct, {P("x"), P()}, {P("x", "y")}), 0);
}

TEST(ModuleFlow, AHeadOfSeveralLines) {
  std::string text = kProduct;
  text.insert(text.find("%arg1"), "\n      ");
  text.insert(text.find("->"), "\n      ");
  EXPECT_EQ(flow_bytes(text, {P("x", "y"), P("y", none)}), 8 * 64 * 4);
}

TEST(ModuleFlow, TheGenericForm) {
  constexpr const char* kGeneric =
      R"(  func.func @main(%arg0: tensor<4x16x32xf32>, %arg1: tensor<4x32x64xf32>) -> (tensor<4x16x64xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<4x16x32xf32>, tensor<4x32x64xf32>) -> tensor<4x16x64xf32> loc("n1")
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0, 2>}> : (tensor<4x16x64xf32>) -> tensor<16x4x64xf32>
    %2 = "stablehlo.reduce"(%1, %9) <{dimensions = array<i64: 2>}> ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %t1 = stablehlo.add %b0, %b1 : tensor<f32>
      stablehlo.return %t1 : tensor<f32>
    }) : (tensor<16x4x64xf32>, tensor<f32>) -> tensor<16x4xf32> loc("n2")
    return %2 : tensor<16x4xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kGeneric, {P("y", none, "x"), P("y", "x")}), 1 * 16 * 64 * 4);
  // The reduce sums over the last dimension, which x splits: its result, 16 x 4 with y on the 4, is
  // all-reduced.
  EXPECT_EQ(flow_bytes(kGeneric, {P("y"), P("y", none, "x")}), 16 * 1 * 4);
}

TEST(ModuleFlow, LoopsCallsAndConstraints) {
  constexpr const char* kLoop =
      R"(  func.func @main(%arg0: tensor<16x32xf32>, %arg1: tensor<12x32x32xf32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %arg1) : tensor<i32>, tensor<16x32xf32>, tensor<12x32x32xf32>
    cond {
      %c_7 = stablehlo.constant dense<12> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = func.call @layer(%iterArg_0, %iterArg_1, %iterArg) : (tensor<16x32xf32>, tensor<12x32x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      stablehlo.return %iterArg, %5, %iterArg_1 : tensor<i32>, tensor<16x32xf32>, tensor<12x32x32xf32>
    }
    %2 = sdy.sharding_constraint %1#1 <@mesh, [{"x"}, {}]> : tensor<16x32xf32>
    return %2 : tensor<16x32xf32>
  }
  func.func private @layer(%arg0: tensor<16x32xf32>, %arg1: tensor<12x32x32xf32>, %arg2: tensor<i32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg1, %arg2, %c, %c, sizes = [1, 32, 32] : (tensor<12x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %3 = stablehlo.tanh %2 : tensor<16x32xf32>
    return %3 : tensor<16x32xf32>
  }
)";
  // Each of 12 layers has its rows over x and its contracted dimension over y: one all-reduce of 8
  // x 32 floats.
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P(none, "y")}), 12 * 8 * 32 * 4);
  // Columns over y: the next layer contracts them only in the next iteration; the constraint at the
  // end requires them whole.
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P(none, none, "y")}), 8 * 32 * 4);
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P()}), 0);
}

TEST(ModuleFlow, ShapesTellTheRest) {
  constexpr const char* kRest =
      R"(  func.func @main(%arg0: tensor<16x32xf32>, %arg1: tensor<32xf32>) -> tensor<4x4x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<16x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<16x32xf32>) -> tensor<4x4x32xf32>
    return %2 : tensor<4x4x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kRest, {P("x"), P()}), 0);
  EXPECT_EQ(flow_bytes(kRest, {P("x", "y"), P("y")}), 0);
  // The vector is split by x, which also splits the rows it is added to: it is gathered.
  EXPECT_EQ(flow_bytes(kRest, {P("x"), P("x")}), 16 * 32 * 4);
  // 16 rows over 8 devices cannot become 4 rows over 8.
  EXPECT_EQ(flow_bytes(kRest, {P(axes("x", "y")), P()}), 16 * 32 * 4);
}

TEST(ModuleFlow, DamagedTexts) {
  EXPECT_FALSE(ModuleFlow::parse("module {}").ok());
  std::string text = kProduct;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (char c : {'<', '"', '}', '%', '[', '9', '\n'}) {
      std::string damaged = text;
      damaged[at] = c;
      Result<ModuleFlow> read = ModuleFlow::parse(damaged);
      if (read.ok()) (void)read->communication(kFlowAxes, {P("x", "y"), P("y", none)}, {P()});
    }
}

TEST(ModuleFlow, TypesOfTensors) {
  EXPECT_EQ(internal::tensor_type("tensor<16x32xbf16>")->to_string(), "bf16[16,32]");
  EXPECT_EQ(internal::tensor_type("tensor<f32>")->to_string(), "f32[]");
  for (const char* other : {"tensor<?x2xf32>", "i32", "tensor<2xcomplex<i32>>", "tensor<2x",
                            "tensor<99999999999x99999999999xf32>"})
    EXPECT_EQ(internal::tensor_type(other), std::nullopt) << other;
}

}  // namespace
}  // namespace meshard
