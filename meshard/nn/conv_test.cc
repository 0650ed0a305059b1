#include "meshard/nn/conv.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Convs = OnPlugin;

Conv varied_conv(Shape kernel) {
  std::int64_t out = kernel[kernel.rank() - 1];
  return {varied(kernel, 0.5), varied({out}, 1, 7)};
}

// A window of 2 x 3 with steps 2 and 1 over 5 x 4, padded by 1 before and 0 after, 0 and 2.
TEST_F(Convs, AreTheirDefinition) {
  Conv params = varied_conv({2, 3, 2, 3});
  Tensor x = varied({2, 5, 4, 2}, 1, 3);
  Numbers in(x), kernel(params.kernel), bias(*params.bias);
  std::vector<double> expected;
  for (int b = 0; b < 2; ++b)
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < 4; ++column)
        for (int out = 0; out < 3; ++out) {
          double total = bias({out});
          for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 3; ++j)
              for (int c = 0; c < 2; ++c) {
                int at = 2 * row + i - 1, across = column + j;
                if (at >= 0 && at < 5 && across < 4)
                  total += in({b, at, across, c}) * kernel({i, j, c, out});
              }
          expected.push_back(total);
        }
  ConvolutionOptions options{.strides = {2, 1}, .padding = {{1, 0}, {0, 2}}};
  expect_near(conv(params, x, options), expected, 2e-5);
  // The same with other batch dimensions.
  expect_near(conv(params, reshape(x, {1, 2, 1, 5, 4, 2}), options), expected, 2e-5);
  Tensor alone = conv(params, reshape(slice(x, {0, 0, 0, 0}, {1, 5, 4, 2}), {5, 4, 2}), options);
  EXPECT_EQ(alone.shape(), (Shape{3, 4, 3}));
  expect_near(alone, {expected.begin(), expected.begin() + 36}, 2e-5);
}

TEST_F(Convs, HaveABiasInAnyLayout) {
  Conv params = varied_conv({3, 2, 4});
  Tensor x = varied({2, 6, 2});
  Tensor last = conv(params, x);
  Tensor first = conv({permute_dims(params.kernel, {2, 1, 0}), params.bias},
                      permute_dims(x, {0, 2, 1}), {.layout = {"NCW", "OIW", "NCW"}});
  expect_same(permute_dims(first, {0, 2, 1}), last, 1e-5);
}

// Two groups are two convolutions of half of the features.
TEST_F(Convs, InGroups) {
  Conv params = varied_conv({3, 2, 4});
  Tensor x = varied({2, 6, 4});
  auto half = [&](const Tensor& t, int i) {
    std::int64_t size = t.dim(-1) / 2;
    return index(t, {ellipsis, range(i * size, (i + 1) * size)});
  };
  std::vector<Tensor> parts;
  for (int i : {0, 1})
    parts.push_back(conv({half(params.kernel, i), half(*params.bias, i)}, half(x, i),
                         {.padding = Padding::kSame}));
  expect_same(conv(params, x, {.padding = Padding::kSame, .feature_groups = 2}), concat(parts, -1),
              1e-5);
}

// A transposed convolution is the linear map of the convolution's derivative by its input, with the
// kernel's window reversed and its features exchanged.
TEST_F(Convs, TransposedAreDerivatives) {
  Conv params = varied_conv({3, 2, 4});
  params.bias.reset();
  Tensor y = varied({1, 5, 2}, 1, 5);
  Conv back{permute_dims(flip(params.kernel, {0}), {0, 2, 1}), {}};
  auto paired = [&](const Tensor& x) { return sum(conv(back, x, {.strides = {2}}) * y); };
  expect_same(conv_transpose(params, y, {.strides = {2}}), grad(paired)(zeros({1, 11, 4})), 1e-5);
}

TEST_F(Convs, AreMadeByTheirRules) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}), {{"filters", "model"}, {"batch", "data"}});
  auto made = [](Maker& make) {
    return make_conv(make, {3, 3}, 8, 16, {.groups = 2, .kernel = init::constant(1)});
  };
  Conv split = create(rules, 1, made), whole = create({}, 1, made);
  EXPECT_EQ(split.kernel.shape(), (Shape{3, 3, 4, 16}));
  EXPECT_EQ(split.kernel.sharding()->spec(), P(none, none, none, "model"));
  EXPECT_EQ(split.bias->sharding()->spec(), P("model"));
  Fans seen;
  auto looks = [&](const Tensor&, const Shape& shape, const Fans& fans, DType dtype) {
    seen = fans;
    return zeros(shape, dtype);
  };
  create({}, 1, [&](Maker& make) {
    return make_conv(make, {3, 3}, 8, 16, {.groups = 2, .kernel = looks});
  });
  EXPECT_EQ(seen.in, 9 * 4);
  EXPECT_EQ(seen.out, 9 * 16);
  Tensor x = varied({6, 5, 5, 8});
  ConvolutionOptions options{.padding = Padding::kSame, .feature_groups = 2};
  auto loss = [&](const Conv& params, const Tensor& in) {
    return sum(square(conv(params, in, options)));
  };
  auto both = jit(value_and_grad<0, 1>(loss));
  auto [value, gradients] = both(whole, x);
  auto [same_value, same_gradients] = both(split, rules.mark(x, P("batch")));
  EXPECT_NEAR(value.item<float>() / same_value.item<float>(), 1, 1e-5);
  expect_same(std::get<0>(same_gradients).kernel / 100, std::get<0>(gradients).kernel / 100, 1e-4);
  expect_same(std::get<1>(same_gradients) / 100, std::get<1>(gradients) / 100, 1e-4);
}

TEST_F(Convs, RefuseWhatDoesNotFit) {
  Maker make{AxisRules()};
  auto refused = [&](const Dimensions& window, std::int64_t in, std::int64_t out,
                     std::int64_t groups, std::initializer_list<const char*> words) {
    std::vector<std::string> all(words.begin(), words.end());
    return throws_error([&] { make_conv(make, window, in, out, {.groups = groups}); },
                        ErrorCode::kInvalidArgument, all);
  };
  EXPECT_TRUE(refused({}, 2, 4, 1, {"[]", "0 sizes"}));
  EXPECT_TRUE(refused({1, 1, 1, 1}, 2, 4, 1, {"4 sizes"}));
  EXPECT_TRUE(refused({3, 0}, 2, 4, 1, {"[3, 0]", "positive"}));
  EXPECT_TRUE(refused({3}, 2, 4, 4, {"4 groups", "2 input and 4 output"}));
  EXPECT_TRUE(throws_error(
      [] {
        conv(varied_conv({3, 3, 2, 4}), ones({6, 2}));
      },
      ErrorCode::kInvalidArgument, {"conv_test.cc:", "f32[6,2]"}));
  EXPECT_TRUE(throws_error(
      [] {
        conv(varied_conv({3, 2, 4}), ones({6, 2}), {.layout = {"NWC", "WIO", "NWC"}});
      },
      ErrorCode::kInvalidArgument, {"one batch dimension", "f32[6,2]"}));
}

}  // namespace
}  // namespace meshard::nn
