#include "meshard/stablehlo/argument_shardings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {
namespace {

TEST(ArgumentShardings, ReplaceThoseOfTheModule) {
  constexpr std::string_view kText = R"(module @m attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, tf.aliasing_output = 0 : i32} loc("a"), %arg1: tensor<8xf32>, %arg2: tensor<8xf32> {jax.buffer_donor = true}) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
})";
  std::string made =
      with_argument_shardings(
          kText, {{0, "#sdy.sharding<@mesh, [{}]>"}, {1, "#sdy.sharding<@other, [{\"y\"}]>"}},
          "sdy.mesh @other = <[\"y\"=2]>")
          .value();
  ModuleFacts facts = read_module(made).value();
  ASSERT_EQ(facts.meshes.size(), 2u);
  EXPECT_EQ(facts.meshes[1].name, "other");
  ASSERT_EQ(facts.arguments.size(), 3u);
  EXPECT_EQ(facts.arguments[0].sharding, "#sdy.sharding<@mesh, [{}]>");
  EXPECT_EQ(facts.arguments[0].name, "a");
  EXPECT_TRUE(facts.arguments[0].donated);
  EXPECT_EQ(made.find("aliasing"), std::string::npos);
  EXPECT_EQ(facts.arguments[1].sharding, "#sdy.sharding<@other, [{\"y\"}]>");
  EXPECT_EQ(facts.arguments[2].sharding, "");
  EXPECT_FALSE(with_argument_shardings(kText, {{3, "#sdy.sharding<@mesh, [{}]>"}}, "").ok());
  EXPECT_FALSE(with_argument_shardings("module {}", {}, "").ok());
}

}  // namespace
}  // namespace meshard::stablehlo
