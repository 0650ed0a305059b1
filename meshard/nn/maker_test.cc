#include "meshard/nn/maker.h"

#include <gmock/gmock.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/nn/mlp.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Makers = OnPlugin;

Mlp made_mlp(Maker& make) {
  return make_mlp(make, 16, 32, {.up = init::normal(1), .down = init::normal(1)});
}

TEST_F(Makers, ParametersLieAsTheRulesSayAndAreTheSameOnAnyMesh) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"hidden", "model"}});
  Mlp one = create({}, 5, made_mlp);
  restart();
  Mlp eight = create(rules, 5, made_mlp);
  EXPECT_EQ(eight.up.weight.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(eight.up.bias->sharding()->spec(), P("model"));
  EXPECT_EQ(eight.down.weight.sharding()->spec(), P("model", none));
  EXPECT_LT(done().bytes_sent, 1000u) << "keys alone: the weights are made on the devices";
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(structure::tensors(one)[i].to_vector<float>(),
              structure::tensors(eight)[i].to_vector<float>());
}

TEST_F(Makers, EveryParameterHasNumbersOfItsOwn) {
  auto make_two = [](Maker& make) {
    std::vector<Tensor> two;
    for (int i = 0; i < 2; ++i) two.push_back(make({64}, P(), init::normal(1)));
    return two;
  };
  std::vector<Tensor> two = create({}, 1, make_two), other = create({}, 2, make_two);
  EXPECT_NE(two[0].to_vector<float>(), two[1].to_vector<float>());
  EXPECT_NE(two[0].to_vector<float>(), other[0].to_vector<float>());
}

TEST_F(Makers, ADescriptionHasTypesAndShardingsAlone) {
  AxisRules rules(Mesh({{"model", 4}}), {{"hidden", "model"}});
  Mlp mlp = describe(rules, made_mlp, DType::bf16);
  EXPECT_TRUE(is_abstract(mlp.down.weight));
  EXPECT_EQ(mlp.down.weight.type(), (TensorType{DType::bf16, {32, 16}}));
  EXPECT_EQ(mlp.down.weight.sharding()->spec(), P("model", none));
  EXPECT_FALSE(describe({}, made_mlp).up.weight.sharding());
}

TEST_F(Makers, InsideATraceParametersAreRecorded) {
  AxisRules rules(Mesh({{"model", 4}}), {{"hidden", "model"}});
  auto make = jit([&](const Tensor& key) {
    Maker maker(rules, key);
    return made_mlp(maker);
  });
  Mlp traced = make(random::key(5)), direct = create(rules, 5, made_mlp);
  EXPECT_EQ(traced.up.weight.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(traced.down.weight.to_vector<float>(), direct.down.weight.to_vector<float>());
}

TEST(Maker, ARuleForANameThatNothingHasIsAnError) {
  Mesh mesh({{"data", 2}, {"model", 2}});
  auto make = [](Maker& maker) { return maker({4, 8}, P("embed", "hidden_units"), init::zeros()); };
  EXPECT_TRUE(throws_error(
      [&] {
        (void)describe(AxisRules(mesh, {{"hiden_units", "model"}}), make);
      },
      ErrorCode::kNotFound, {"hiden_units", "\"hidden_units\"", "strict", "maker_test.cc:"}));
  AxisRules rules(mesh, {{"batch", "data"}, {"heads", "model"}, {"hidden_units", "model"}});
  EXPECT_EQ(describe(rules, make).sharding()->spec(), P(none, "model"));
  EXPECT_EQ(describe(AxisRules(mesh, {{"rows", "data"}}), make, kDefaultFloat, /*strict=*/false)
                .sharding()
                ->spec(),
            P(none, none));
}

}  // namespace
}  // namespace meshard::nn
