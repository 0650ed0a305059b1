#include "meshard/nn/layers.h"

#include <gmock/gmock.h>

#include "meshard/nn/mlp.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using MadeLayers = OnPlugin;

Mlp one_mlp(Maker& make) {
  return make_mlp(make, 16, 32, {.up = init::normal(1), .down = init::uniform(2)});
}
struct Pair {
  Layers<Mlp> first;
  Linear second;
  MESHARD_FIELDS(first, second)
};
Pair one_pair(Maker& make) { return {make_layers(make, 2, one_mlp), make_linear(make, 16, 4)}; }

TEST_F(MadeLayers, HaveTheValuesOfLayersMadeOneByOne) {
  Layers<Mlp> stacked = create({}, 5, [](Maker& make) { return make_layers(make, 3, one_mlp); });
  std::vector<Mlp> separate = create({}, 5, [](Maker& make) {
    std::vector<Mlp> all;
    for (int i = 0; i < 3; ++i) all.push_back(one_mlp(make));
    return all;
  });
  ASSERT_EQ(stacked.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_EQ(structure::tensors(stacked[i])[k].to_vector<float>(),
                structure::tensors(separate[i])[k].to_vector<float>())
          << "layer " << i << ", parameter " << k;
}

TEST_F(MadeLayers, OfLayers) {
  Layers<Pair> stacked = create({}, 5, [](Maker& make) {
    make({3}, P(), init::zeros());
    return make_layers(make, 3, one_pair);
  });
  std::vector<Pair> separate = create({}, 5, [](Maker& make) {
    make({3}, P(), init::zeros());
    std::vector<Pair> all;
    for (int i = 0; i < 3; ++i) all.push_back(one_pair(make));
    return all;
  });
  EXPECT_EQ(stacked.stacked.first.stacked.up.weight.shape(), (Shape{3, 2, 16, 32}));
  std::vector<Tensor> all = structure::tensors(stacked.unstacked()),
                      one = structure::tensors(separate);
  ASSERT_EQ(all.size(), one.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].to_vector<float>(), one[i].to_vector<float>()) << i;
}

TEST_F(MadeLayers, AreMadeOnTheDevicesOfTheirRules) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"hidden", "model"}});
  restart();
  auto make_all = [](Maker& make) { return make_layers(make, 3, one_mlp); };
  Layers<Mlp> made = create(rules, 5, make_all);
  EXPECT_EQ(made.stacked.up.weight.sharding()->spec(), P(none, none, "model"));
  EXPECT_EQ(made.stacked.down.weight.sharding()->spec(), P(none, "model", none));
  EXPECT_LT(done().bytes_sent, 2000u) << "keys alone";
  Layers<Mlp> described = describe(rules, make_all);
  EXPECT_EQ(described.stacked.up.weight.type(), made.stacked.up.weight.type());
  EXPECT_EQ(described.stacked.up.weight.sharding(), made.stacked.up.weight.sharding());
}

TEST_F(MadeLayers, AreUsedAsAVector) {
  Layers<Linear> layers = stack_layers(std::vector<Linear>{{varied({2, 3}), varied({3})},
                                                           {varied({2, 3}, 2), varied({3}, 3)},
                                                           {varied({2, 3}, 4), varied({3}, 5)}});
  std::size_t i = 0;
  for (const Linear& each : layers) {
    expect_same(each.weight, layers[i].weight);
    expect_same(*each.bias, *layers[i++].bias);
  }
  EXPECT_EQ(i, 3u);
  expect_same(layers[2].weight, varied({2, 3}, 4));
  EXPECT_EQ(layers.unstacked().size(), 3u);
}

TEST(LayersOfAModel, PathsNameAllLayersAtOnce) {
  Layers<Pair> layers = describe({}, [](Maker& make) { return make_layers(make, 3, one_pair); });
  std::vector<std::string> paths;
  structure::for_each(
      layers, [&](const Tensor&, const std::string& path) { paths.push_back(path); }, ".blocks");
  ASSERT_EQ(paths.size(), 6u);
  EXPECT_EQ(paths[0], ".blocks[:].first[:].up.weight");
  EXPECT_EQ(paths[5], ".blocks[:].second.bias");
  EXPECT_EQ(structure::stacked_dimensions(paths[0]), 2u);
  EXPECT_EQ(structure::stacked_dimensions(".x[\"[:]\"].y[3]"), 0u);
}

TEST(LayersOfAModel, Errors) {
  Layers<Linear> layers{{varied({2, 3}), varied({2})}};
  EXPECT_TRUE(throws_error([&] { layers[2]; }, ErrorCode::kOutOfRange,
                           {"layers_test.cc:", "no layer 2", "number of layers is 2"}));
  EXPECT_TRUE(throws_error([&] { layers[-1]; }, ErrorCode::kOutOfRange, {"no layer -1"}));
  EXPECT_TRUE(throws_error(
      [] {
        (Layers<Linear>{{varied({2, 3}), varied({3})}}).size();
      },
      ErrorCode::kInvalidArgument, {"layers_test.cc:", "f32[2,3]", "2 layers", "f32[3]", "has 3"}));
  EXPECT_TRUE(throws_error([] { (Layers<Tensor>{varied({})}).size(); }, ErrorCode::kInvalidArgument,
                           {"f32[]"}));
  EXPECT_TRUE(throws_error([] { (Layers<std::vector<Tensor>>{}).size(); },
                           ErrorCode::kInvalidArgument, {"no tensors"}));
  EXPECT_TRUE(
      throws_error([] { describe({}, [](Maker& make) { return make_layers(make, 0, one_mlp); }); },
                   ErrorCode::kInvalidArgument, {"layers_test.cc:", "positive, not 0"}));
}

}  // namespace
}  // namespace meshard::nn
