#include "meshard/nn/linear.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"

namespace meshard::nn {
namespace {

using Layers = OnPlugin;

TEST_F(Layers, LinearIsAProductAndASum) {
  Linear params{varied({3, 4}), varied({4}, 1, 5)};
  Tensor x = varied({2, 2, 3}, 1, 9);
  Numbers w(params.weight), b(*params.bias), in(x);
  std::vector<double> expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int o = 0; o < 4; ++o) {
        double sum = b({o});
        for (int k = 0; k < 3; ++k) sum += in({i, j, k}) * w({k, o});
        expected.push_back(sum);
      }
  expect_near(linear(params, x), expected);
  EXPECT_EQ(linear(params, astype(x, DType::bf16)).dtype(), DType::bf16);
  params.bias.reset();
  expect_same(linear(params, zeros({5, 3})), zeros({5, 4}));
}

// A product is linear in the weight, so its real and imaginary parts can be computed separately.
TEST_F(Layers, ComplexParametersKeepTheirImaginaryPart) {
  Linear real{varied({3, 4}), varied({4}, 1, 5)},
      imaginary{varied({3, 4}, 1, 7), varied({4}, 1, 2)};
  Linear params{complex(real.weight, imaginary.weight), complex(*real.bias, *imaginary.bias)};
  Tensor x = varied({2, 3}, 1, 9), y = linear(params, x);
  EXPECT_EQ(y.dtype(), DType::c64);
  expect_same(meshard::real(y), linear(real, x));
  expect_same(imag(y), linear(imaginary, x));
  Embedding table{complex(varied({5, 3}), varied({5, 3}, 1, 4))};
  expect_same(imag(unembed(table, x)), unembed(Embedding{imag(table.table)}, x));
}

TEST_F(Layers, LinearHasTheDimensionsThatItsOptionsName) {
  AxisRules rules(Mesh({{"model", 2}}), {{"a", "model"}});
  Linear in = create(
      rules, 1, [](Maker& make) { return make_linear(make, 4, 6, {.in = "a", .bias = false}); });
  EXPECT_EQ(in.weight.sharding()->spec(), P("model", none));
  EXPECT_FALSE(in.bias);
}

TEST_F(Layers, EmbeddingTakesRowsAndUnembedsWithThem) {
  Embedding params{varied({5, 3})};
  Tensor tokens = from_host(std::vector<std::int32_t>{4, 0, 4}, {1, 3});
  Tensor rows = embedding(params, tokens);
  EXPECT_EQ(rows.shape(), Shape({1, 3, 3}));
  Numbers table(params.table), got(rows);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got({0, 2, i}), table({4, i}));
  expect_same(unembed(params, rows), matmul(rows, permute_dims(params.table, {1, 0})));
  // Row 4 is used twice, the others once or not at all.
  Tensor gradient =
      grad([&](const Embedding& p) { return sum(embedding(p, tokens)); })(params).table;
  EXPECT_THAT(sum(gradient, {1}).to_vector<float>(), testing::ElementsAre(3, 0, 0, 0, 6));
}

}  // namespace
}  // namespace meshard::nn
