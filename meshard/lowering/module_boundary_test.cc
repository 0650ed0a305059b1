#include "meshard/lowering/module_boundary.h"

#include <gmock/gmock.h>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

constexpr std::string_view kModule = R"(module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["r"=2, "c"=2]>
  sdy.mesh @turned = <["r"=4], device_ids=[3, 2, 1, 0]>
  func.func public @main(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {"c"}p1]>}, %arg1: tensor<4xi32>, %arg2: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>}) {
    %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";

LoweredModule lowered_on(std::optional<Mesh> devices) {
  stablehlo::ModuleFacts facts = stablehlo::read_module(kModule).value();
  return lowered_from_module(std::string(kModule), facts, devices).value();
}

TEST(ModuleBoundary, ShardingsAreOverTheModulesMeshesOnTheGivenDevices) {
  LoweredModule lowered = lowered_on(Mesh({{"i", 4}}, {7, 5, 3, 1}));
  Mesh mesh({{"r", 2}, {"c", 2}}, {7, 5, 3, 1});
  EXPECT_EQ(lowered.mesh, mesh);
  EXPECT_THAT(lowered.meshes, ElementsAre(mesh, Mesh({{"r", 4}}, {1, 3, 5, 7})));
  ASSERT_EQ(lowered.arguments.size(), 3u);
  EXPECT_EQ(lowered.arguments[0].sharding, Sharding(mesh, P("r", "c")));
  EXPECT_FALSE(lowered.arguments[1].sharding);
  EXPECT_FALSE(lowered.arguments[1].is_specified_otherwise);
  // 2 does not divide 5: XLA drops it.
  EXPECT_FALSE(lowered.arguments[2].sharding);
  EXPECT_TRUE(lowered.arguments[2].is_specified_otherwise);
  EXPECT_FALSE(lowered.results[0].is_exact());
  EXPECT_TRUE(lowered.use_shardy);
  EXPECT_TRUE(lowered.shards_open_values);
}

TEST(ModuleBoundary, ShardingsAreOverTheMeshThatTheyName) {
  constexpr std::string_view kSameAxes = R"(module @m {
  sdy.mesh @one = <["r"=2, "c"=2]>
  sdy.mesh @other = <["r"=2, "c"=2], device_ids=[3, 2, 1, 0]>
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@other, [{"r"}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@one, [{"r"}]>}) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
})";
  stablehlo::ModuleFacts facts = stablehlo::read_module(kSameAxes).value();
  LoweredModule lowered = lowered_from_module("", facts, Mesh({{"i", 4}})).value();
  EXPECT_EQ(lowered.arguments[0].sharding,
            Sharding(Mesh({{"r", 2}, {"c", 2}}, {3, 2, 1, 0}), P("r")));
  EXPECT_EQ(lowered.arguments[1].sharding, Sharding(Mesh({{"r", 2}, {"c", 2}}), P("r")));
}

TEST(ModuleBoundary, AMeshWithTheModulesAxesIsKept) {
  Mesh own = Mesh({{"r", 2}, {"c", 2}}, {4, 5, 6, 7});
  EXPECT_TRUE(lowered_on(own).mesh->is_same_object(own));
}

TEST(ModuleBoundary, AnotherNumberOfDevices) {
  EXPECT_TRUE(throws_error(
      [] {
        (void)lowered_on(Mesh({{"i", 8}}));
      },
      ErrorCode::kInvalidArgument, {"4 devices", "8 are given"}));
  EXPECT_TRUE(throws_error([] { (void)lowered_on(std::nullopt); }, ErrorCode::kInvalidArgument,
                           {"4 devices", "1 is given"}));
}

TEST(ModuleBoundary, TypesOfTensors) {
  EXPECT_EQ(module_tensor_type("tensor<4x2xf32>").value(), (TensorType{DType::f32, {4, 2}}));
  EXPECT_EQ(module_tensor_type("tensor<complex<f32>>").value(), (TensorType{DType::c64, {}}));
  EXPECT_TRUE(throws_error([] { (void)module_tensor_type("tensor<?x2xf32>").value(); },
                           ErrorCode::kInvalidArgument, {"dynamic"}));
  EXPECT_TRUE(throws_error([] { (void)module_tensor_type("!stablehlo.token").value(); },
                           ErrorCode::kUnimplemented, {"not a tensor"}));
  EXPECT_FALSE(module_tensor_type("tensor<4xi4>").ok());
}

TEST(ModuleBoundary, TheNumberOfDevicesMayFollowFromTheShardings) {
  constexpr std::string_view kTiles =
      "module @m { func.func public @main(%arg0: tensor<8xf32> {mhlo.sharding = "
      "\"{devices=[8]<=[8]}\"}) -> tensor<8xf32> { return %arg0 : tensor<8xf32> } }";
  stablehlo::ModuleFacts facts = stablehlo::read_module(kTiles).value();
  EXPECT_EQ(devices_of_module(facts), 8);
  Mesh line({{"i", 8}});
  LoweredModule lowered = lowered_from_module("", facts, line).value();
  EXPECT_EQ(lowered.arguments[0].sharding, Sharding(line, P("i")));
  EXPECT_FALSE(lowered.use_shardy);
}

}  // namespace
}  // namespace meshard
