#include "meshard/nn/losses.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Losses = OnPlugin;

Tensor integers(std::vector<std::int32_t> numbers, Shape shape) {
  return from_host(std::move(numbers), std::move(shape));
}

constexpr LossReduction kNone = LossReduction::kNone;

// Expected values are those of optax 0.2.8.

TEST_F(Losses, HuberIsThatOfOptax) {
  Tensor x = varied({2, 4}), wanted = varied({2, 4}, 1, 5);
  std::vector<double> each{0.58000004, 0.58000004, 0.4418,     0.57999992,
                           0.4418,     0.58000004, 0.58000004, 0.4418};
  expect_near(huber_loss(x, wanted, 1, kNone), each);
  expect_near(huber_loss(x, wanted), {(5 * 0.58 + 3 * 0.4418) / 8});
  auto slope =
      grad([&](const Tensor& in) { return huber_loss(in, wanted, 1, LossReduction::kSum); });
  expect_near(slope(x), {-1, -1, 0.94, -1, 0.94, -1, -1, 0.94});
  // delta is where the line begins.
  expect_near(huber_loss(from_host<float>({0.5, 3}, {2}), zeros({2}), 2, kNone), {0.125, 4});
  EXPECT_EQ(huber_loss(astype(x, DType::bf16), wanted).dtype(), DType::f32);
}

TEST_F(Losses, DivergencesAreThoseOfOptax) {
  Tensor x = log_softmax(varied({2, 4}, 3)), wanted = softmax(varied({2, 4}, 3, 5));
  Tensor zeroed = where(equal(reshape(arange(8), {2, 4}), 1), 0, wanted);
  expect_near(kl_divergence(x, zeroed, {.reduction = kNone}), {0.55292225, 2.4666836}, 1e-5);
  expect_near(kl_divergence(x, log(wanted), {.log_targets = true, .reduction = kNone}),
              {2.0983219, 2.4666836}, 1e-5);
  expect_near(
      kl_divergence(permute_dims(x, {1, 0}), permute_dims(zeroed, {1, 0}), {.dimension = 0}),
      {(0.55292225 + 2.4666836) / 2}, 1e-5);
  // Where the target is 0 the derivative is 0, also if the prediction is.
  Tensor sure = from_host<float>({0, -INFINITY}, {2}), right = from_host<float>({1, 0}, {2});
  expect_near(kl_divergence(sure, right), {0});
  expect_near(grad([&](const Tensor& in) { return kl_divergence(in, right); })(sure), {-1, 0});
}

TEST_F(Losses, FocalIsThatOfOptax) {
  Tensor x = varied({2, 4}, 3), wanted = from_host<float>({0, 1, 1, 0, 1, 0, 0.25, 1}, {2, 4});
  expect_near(focal_loss(x, wanted, {.reduction = kNone}),
              {0.00010928333, 0.39885271, 0.0022366024, 0.0042176787, 0.037280463, 0.00018320914,
               0.12847292, 0.0013749272});
  FocalOptions weighted{.gamma = 1.5, .alpha = 0.25, .reduction = kNone};
  expect_near(focal_loss(x, wanted, weighted),
              {0.00037636361, 0.12544648, 0.0015637192, 0.0079809194, 0.016623992, 0.00057934312,
               0.11897536, 0.0010406715});
  weighted.reduction = LossReduction::kSum;
  expect_near(grad([&](const Tensor& in) { return focal_loss(in, wanted, weighted); })(x),
              {0.00090513797, -0.14860684, -0.0035071401, 0.017426919, -0.03094556, 0.001383021,
               0.078347825, -0.002373518});
  expect_same(focal_loss(x, wanted, {.gamma = 0}), binary_cross_entropy(x, wanted));
}

TEST_F(Losses, ZIsTheSquareOfTheNormalizer) {
  Tensor x = varied({2, 4}, 3);
  expect_near(z_loss(x, 1, -1, kNone), {4.1346354, 5.7955191}, 1e-5);
  expect_near(z_loss(permute_dims(x, {1, 0}), 1e-4, 0), {0.00049650772}, 1e-8);
}

TEST_F(Losses, CtcIsThatOfOptax) {
  Tensor x = varied({3, 6, 4}, 2), labels = integers({1, 1, 2, 3, 2, 1, 2, 2, 2}, {3, 3});
  // Padding may be anything. The third sequence does not fit: it needs five positions.
  Tensor with_padding = integers({1, 1, -7, 3, 2, 1, 2, 2, 2}, {3, 3});
  CtcOptions options{.logit_lengths = integers({5, 6, 4}, {3}),
                     .label_lengths = integers({2, 3, 3}, {3}),
                     .reduction = kNone};
  auto loss = jit(value_and_grad([&](const Tensor& in, const Tensor& wanted) {
    Tensor each = ctc_loss(in, wanted, options);
    return std::pair(sum(index(each, {range(0, 2)})), each);
  }));
  auto [both, slope] = loss(x, with_padding);
  expect_near(index(both.second, {range(0, 2)}), {5.0613637, 3.6329272}, 1e-5);
  EXPECT_NEAR(index(both.second, {2}).item<float>(), 100004.15, 0.1);
  std::vector<double> expected{-0.22705306,
                               -0.59779453,
                               0.75624287,
                               0.068604797,
                               -0.59192908,
                               -0.13328111,
                               0.11782133,
                               0.60738891,
                               -0.17200243,
                               -0.14664376,
                               0.051768862,
                               0.26687729,
                               -0.21918011,
                               -0.099466071,
                               0.29214355,
                               0.026502667,
                               -0.14481306,
                               -0.17383313,
                               0.051768873,
                               0.26687735,
                               0,
                               0,
                               0,
                               0,
                               0.053805903,
                               0.022854991,
                               0.11782136,
                               -0.19448221,
                               -0.084101923,
                               0.57065755,
                               -0.086352997,
                               -0.40020266,
                               0.2079913,
                               0.054790404,
                               -0.27654251,
                               0.013760734,
                               -0.18933421,
                               -0.023564059,
                               -0.39285716,
                               0.60575545,
                               0.087562017,
                               -0.39544088,
                               0.041001465,
                               0.26687738,
                               -0.26924485,
                               -0.049401447,
                               0.29214358,
                               0.026502673};
  expected.resize(72, 0);
  expect_near(slope, expected, 1e-5);
  expect_near(ctc_loss(x, labels, {.blank = 3, .reduction = kNone}),
              {5.3524857, 4.9030123, 9.9425287}, 1e-5);
  expect_near(ctc_loss(x, labels, {.blank = 3}), {(5.3524857 + 4.9030123 + 9.9425287) / 3}, 1e-5);
  Tensor none = ctc_loss(x, integers({0, 4, 1, 1, 2, 1, -1, 1, 2}, {3, 3}), {.reduction = kNone});
  EXPECT_EQ(isnan(none).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  // Without labels all positions are blank.
  Tensor blank = negative(sum(index(log_softmax(x), {ellipsis, 0}), 1));
  expect_same(ctc_loss(x, zeros({3, 0}, DType::i32), {.reduction = kNone}), blank, 1e-5);
}

TEST_F(Losses, OfShardsAreThoseOfTheWhole) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  Tensor x = varied({5, 6, 8}, 2), labels = integers({1, 1, 2, 3, 2, 1, 4, 4, 5, 7}, {5, 2});
  Tensor wanted = softmax(varied({5, 6, 8}, 2, 9));
  auto all = jit([](const Tensor& in, const Tensor& of, const Tensor& numbers) {
    return std::vector<Tensor>{huber_loss(in, of), kl_divergence(log_softmax(in), of),
                               focal_loss(in, of), z_loss(in), ctc_loss(in, numbers)};
  });
  std::vector<Tensor> one = all(x, wanted, labels);
  std::vector<Tensor> eight = all(mark_sharding(x, mesh, P("data", none, "model")),
                                  mark_sharding(wanted, mesh, P("data", none, "model")),
                                  mark_sharding(labels, mesh, P("data", none)));
  for (std::size_t i = 0; i < one.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(eight[i], one[i], 1e-5);
  }
}

TEST_F(Losses, RefuseWhatDoesNotFit) {
  auto refused = [](auto call, const std::vector<std::string>& words) {
    return throws_error([&] { (void)call(); }, ErrorCode::kInvalidArgument, words);
  };
  Tensor x = ones({2, 3}), logits = ones({2, 5, 4}), labels = zeros({2, 3}, DType::i32);
  EXPECT_TRUE(
      refused([&] { return huber_loss(x, ones({3})); }, {"losses_test.cc:", "f32[3]", "f32[2,3]"}));
  EXPECT_TRUE(refused([&] { return huber_loss(x, x, 0); }, {"delta = 0"}));
  EXPECT_TRUE(refused([&] { return kl_divergence(x, ones({2, 2})); }, {"f32[2,2]"}));
  EXPECT_TRUE(throws_error([&] { (void)kl_divergence(x, x, {.dimension = 2}); },
                           ErrorCode::kOutOfRange, {"losses_test.cc:", "dimension 2", "rank 2"}));
  EXPECT_TRUE(refused([&] { return focal_loss(x, x, {.gamma = -1}); }, {"gamma = -1"}));
  EXPECT_TRUE(refused([&] { return focal_loss(x, x, {.alpha = 2}); }, {"alpha = 2"}));
  EXPECT_TRUE(refused([&] { return z_loss(complex(x, x)); }, {"c64[2,3]"}));
  EXPECT_TRUE(refused([&] { return ctc_loss(x, labels); }, {"f32[2,3]", "[batch, time, classes]"}));
  EXPECT_TRUE(refused([&] { return ctc_loss(logits, ones({2, 3})); }, {"f32[2,3]"}));
  EXPECT_TRUE(
      refused([&] { return ctc_loss(logits, labels, {.blank = 4}); }, {"blank 4", "4 classes"}));
  EXPECT_TRUE(refused([&] { return ctc_loss(logits, labels, {.label_lengths = ones({2})}); },
                      {"label_lengths are f32[2]", "2 sequences"}));
}

}  // namespace
}  // namespace meshard::nn
