#include "meshard/nn/lora.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/linear.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Adapters = OnPlugin;

TEST_F(Adapters, AddToTheLayer) {
  Lora adapter{varied({4, 2}), varied({2, 6}, 1, 3)};
  Tensor weight = varied({4, 6}, 1, 7), x = varied({3, 4}, 1, 9);
  Tensor expected = matmul(x, weight) + matmul(matmul(x, adapter.down), adapter.up) * 0.5;
  expect_same(linear({weight, {}}, x) + lora(adapter, x, 0.5), expected, 1e-5);
  expect_same(linear({with_lora(weight, adapter, 0.5), {}}, x), expected, 1e-5);
  // Weights with more dimensions: inputs first.
  Tensor heads = with_lora(reshape(weight, {4, 3, 2}), adapter, 0.5);
  expect_same(reshape(heads, {4, 6}), with_lora(weight, adapter, 0.5));
  EXPECT_EQ(with_lora(reshape(weight, {2, 2, 6}), adapter).shape(), (Shape{2, 2, 6}));
  EXPECT_EQ(with_lora(astype(weight, DType::bf16), adapter).dtype(), DType::bf16);
}

TEST_F(Adapters, BeginWithoutEffectAndHaveTheRulesOfTheWeight) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"hidden", "model"}});
  auto made = [](Maker& make) { return make_lora(make, 8, 16, 2); };
  Lora one = create({}, 3, made), eight = create(rules, 3, made);
  EXPECT_EQ(eight.up.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(eight.down.sharding()->spec(), P(none, none));
  Tensor x = varied({3, 8});
  expect_near(lora(one, x), std::vector<double>(48, 0));
  auto loss = [&](const Lora& trained, const Tensor& weight) {
    return sum(square(matmul(x, with_lora(weight, trained))));
  };
  Tensor weight = varied({8, 16});
  Lora slope = jit(grad(loss))(eight, weight);
  expect_same(slope.up, grad(loss)(one, weight).up, 1e-4);
  EXPECT_GT(sum(abs(slope.up)).item<float>(), 1);
  expect_near(slope.down, std::vector<double>(16, 0));
}

TEST_F(Adapters, RefuseWhatDoesNotFit) {
  Lora adapter{varied({4, 2}), varied({2, 6})};
  for (const Shape& shape : {Shape{6, 4}, Shape{3, 2, 4}, Shape{4, 7}, Shape{4}})
    EXPECT_TRUE(throws_error([&] { with_lora(ones(shape), adapter); }, ErrorCode::kInvalidArgument,
                             {"4 inputs and 6 outputs", "f32["}));
  Maker make{AxisRules()};
  EXPECT_TRUE(
      throws_error([&] { make_lora(make, 4, 6, 0); }, ErrorCode::kInvalidArgument, {"the rank 0"}));
}

}  // namespace
}  // namespace meshard::nn
