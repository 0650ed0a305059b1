#include "meshard/lowering/internal/boundary_padding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

TEST(BoundaryPadding, TheShardsOfAPaddedTypeAreEven) {
  Mesh mesh({{"x", 4}, {"y", 2}, {"z", 2}});
  TensorType type{DType::bf16, {7, 6, 5}};
  EXPECT_EQ(padded_type(type, Sharding(mesh, P("x", "y", none))),
            (TensorType{DType::bf16, {8, 6, 5}}));
  EXPECT_EQ(padded_type(type, Sharding(mesh, P({"x", "y"}, none, "z"))),
            (TensorType{DType::bf16, {8, 6, 6}}));
}

TEST(BoundaryPadding, UnevenArgumentsAreCutAndResultsPadded) {
  Mesh mesh({{"x", 4}});
  Sharding rows(mesh, P("x", none));
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {7, 3}}, rows, {});
  Tensor y = sharding_constraint(exp(x), rows);
  std::vector<Value> parameters = {x.value()}, results = {y.value()};
  LoweredModule module =
      lower({.graph = Graph::build(parameters, results, scope.trace()), .donated = {}});
  EXPECT_EQ(
      module.text,
      R"(module @main attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("n0")) -> (tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %t0 = "stablehlo.slice"(%arg0) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 7, 3>, strides = array<i64: 1, 1>}> : (tensor<8x3xf32>) -> tensor<7x3xf32> loc("n0")
    %0 = stablehlo.exponential %t0 : tensor<7x3xf32> loc("n1")
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<7x3xf32> loc("n2")
    %t2 = stablehlo.constant dense<0.0> : tensor<f32>
    %t1 = "stablehlo.pad"(%1, %t2) <{edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<7x3xf32>, tensor<f32>) -> tensor<8x3xf32> loc("n2")
    return %t1 : tensor<8x3xf32>
  }
}
)");
  EXPECT_EQ(module.arguments[0].type.shape, (Shape{7, 3}));
  EXPECT_EQ(module.arguments[0].padded.shape, (Shape{8, 3}));
  EXPECT_EQ(module.results[0].padded.shape, (Shape{8, 3}));
}

}  // namespace
}  // namespace meshard
