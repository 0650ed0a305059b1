#include "meshard/nn/batch_norm.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using ChannelNorms = OnPlugin;

struct Expected {
  std::vector<double> result, mean, variance;
};

// Of x [batch, time, channels], over the rows that count.
Expected by_definition(const BatchNorm& params, const Tensor& x, std::int64_t rows_that_count) {
  Numbers in(x), scale(params.scale), bias(params.bias);
  auto time = x.dim(1), channels = x.dim(2);
  double count = static_cast<double>(rows_that_count * time);
  Expected out;
  out.result.resize(static_cast<std::size_t>(x.shape().size()));
  for (std::int64_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    for (std::int64_t b = 0; b < rows_that_count; ++b)
      for (std::int64_t t = 0; t < time; ++t) mean += in({b, t, c}) / count;
    for (std::int64_t b = 0; b < rows_that_count; ++b)
      for (std::int64_t t = 0; t < time; ++t)
        variance += (in({b, t, c}) - mean) * (in({b, t, c}) - mean) / count;
    out.mean.push_back(mean);
    out.variance.push_back(variance);
    for (std::int64_t b = 0; b < x.dim(0); ++b)
      for (std::int64_t t = 0; t < time; ++t)
        out.result[static_cast<std::size_t>((b * time + t) * channels + c)] =
            (in({b, t, c}) - mean) / std::sqrt(variance + 1e-5) * scale({c}) + bias({c});
  }
  return out;
}

std::vector<double> moved_by(const std::vector<double>& batch, double before, double momentum) {
  std::vector<double> out;
  for (double each : batch) out.push_back(momentum * before + (1 - momentum) * each);
  return out;
}

struct Both {
  BatchNorm norm;
  BatchStatistics state;
  MESHARD_FIELDS(norm, state)
};
Both made_both(Maker& make) { return {make_batch_norm(make, 3), make_batch_statistics(make, 3)}; }

TEST_F(ChannelNorms, ABatchHasTheStatisticsOfAllDevices) {
  BatchNorm norm{varied({3}, 1, 3), varied({3}, 1, 9)};
  BatchStatistics state = create({}, 1, made_both).state;
  // 10 rows over 4 devices: two have 3 rows, one 3 and one 1.
  AxisRules rules(Mesh({{"data", 4}, {"model", 2}}), {{"batch", "data"}});
  Tensor x = varied({10, 5, 3}, 2, 5);
  auto step = jit([](const BatchNorm& params, const BatchStatistics& before, const Tensor& in) {
    return batch_norm(params, before, in, true, {.momentum = 0.9});
  });
  Expected expected = by_definition(norm, x, 10);
  for (const Tensor& in : {x, rules.mark(x, P("batch"))}) {
    auto [y, next] = step(norm, state, in);
    expect_near(y, expected.result, 2e-5);
    expect_near(next.mean, moved_by(expected.mean, 0, 0.9));
    expect_near(next.variance, moved_by(expected.variance, 1, 0.9));
  }
  BatchStatistics running{varied({3}), square(varied({3}, 1, 2))};
  auto [y, same] = batch_norm(norm, running, x, false);
  expect_same(y, meshard::batch_norm(x, norm.scale, norm.bias, running.mean, running.variance));
  EXPECT_EQ(same.mean.value(), running.mean.value());
}

TEST_F(ChannelNorms, OnlyUnmaskedElementsCount) {
  BatchNorm norm{varied({3}, 1, 3), varied({3}, 1, 9)};
  BatchStatistics state = create({}, 1, made_both).state;
  Tensor x = varied({6, 4, 3}, 2, 5);
  // The last two rows are padding; were they counted, the NaN would be everywhere.
  Tensor mask = reshape(arange(6) < 4, {6, 1, 1});
  Tensor padded = where(mask, x, std::nan(""));
  Expected expected = by_definition(norm, x, 4);
  auto [y, next] = batch_norm(norm, state, padded, true, {.mask = mask});
  expect_near(index(y, {range(0, 4)}), {expected.result.begin(), expected.result.begin() + 48},
              2e-5);
  expect_near(next.mean, moved_by(expected.mean, 0, 0.99));
  expect_near(next.variance, moved_by(expected.variance, 1, 0.99));
}

// The derivative passes through the statistics of the batch, but not through the running ones: the
// result of a shifted or scaled input is the same.
TEST_F(ChannelNorms, DerivativesPassThroughTheBatch) {
  BatchNorm norm{ones({3}), zeros({3})};
  BatchStatistics state{zeros({3}), ones({3})};
  Tensor x = varied({6, 4, 3}), weights = varied({6, 4, 3}, 1, 8);
  auto loss = [&](const Tensor& in) {
    auto [y, next] = batch_norm(norm, state, in, true, {.epsilon = 0});
    return sum(y * weights) + sum(next.mean) + sum(next.variance);
  };
  Tensor slope = grad(loss)(x);
  expect_near(sum(slope, {0, 1}), {0, 0, 0}, 2e-5);
  expect_near(sum(slope * x, {0, 1}), {0, 0, 0}, 2e-5);
  EXPECT_GT(sum(abs(slope)).item<float>(), 1);
}

TEST_F(ChannelNorms, AreMadeByTheirRules) {
  AxisRules rules(Mesh({{"data", 4}, {"model", 2}}), {{"wide", "model"}});
  auto all = create(rules, 1, [](Maker& make) {
    return std::pair(make_batch_norm(make, 4, "wide"), make_batch_statistics(make, 4, "wide"));
  });
  for (const Tensor& each : structure::tensors(all)) EXPECT_EQ(each.sharding()->spec(), P("model"));
  expect_near(all.first.scale, {1, 1, 1, 1});
  expect_near(all.first.bias, {0, 0, 0, 0});
  expect_near(all.second.mean, {0, 0, 0, 0});
  expect_near(all.second.variance, {1, 1, 1, 1});
}

TEST_F(ChannelNorms, GroupsAndInstances) {
  Tensor x = varied({2, 5, 4}, 2), scale = varied({4}, 1, 3), bias = varied({4}, 1, 4);
  auto expected = [&](int groups) {
    Numbers in(x), s(scale), b(bias);
    std::vector<double> out(40);
    int size = 4 / groups;
    for (int n = 0; n < 2; ++n)
      for (int g = 0; g < groups; ++g) {
        double mean = 0, variance = 0, count = 5 * size;
        for (int t = 0; t < 5; ++t)
          for (int c = g * size; c < (g + 1) * size; ++c) mean += in({n, t, c}) / count;
        for (int t = 0; t < 5; ++t)
          for (int c = g * size; c < (g + 1) * size; ++c)
            variance += (in({n, t, c}) - mean) * (in({n, t, c}) - mean) / count;
        for (int t = 0; t < 5; ++t)
          for (int c = g * size; c < (g + 1) * size; ++c)
            out[static_cast<std::size_t>((n * 5 + t) * 4 + c)] =
                (in({n, t, c}) - mean) / std::sqrt(variance + 1e-3) * s({c}) + b({c});
      }
    return out;
  };
  expect_near(group_norm({scale, bias}, x, 2, 1e-3), expected(2), 1e-5);
  expect_near(instance_norm({scale, bias}, x, 1e-3), expected(4), 1e-5);
  Tensor first = permute_dims(x, {0, 2, 1});
  expect_near(permute_dims(instance_norm({scale, bias}, first, 1e-3, 1), {0, 2, 1}), expected(4),
              1e-5);
}

TEST_F(ChannelNorms, RefuseWhatDoesNotFit) {
  BatchNorm norm{ones({3}), zeros({3})};
  BatchStatistics state{zeros({3}), ones({3})};
  Tensor x = ones({2, 5, 3});
  auto refused = [&](const BatchStatistics& given, const BatchNormOptions& options,
                     const std::vector<std::string>& words) {
    return throws_error([&] { batch_norm(norm, given, x, true, options); },
                        ErrorCode::kInvalidArgument, words);
  };
  EXPECT_TRUE(refused({zeros({4}), ones({3})}, {}, {"running mean f32[4]", "f32[3]"}));
  EXPECT_TRUE(refused({zeros({3}), ones({1})}, {}, {"running variance f32[1]", "f32[3]"}));
  EXPECT_TRUE(refused(state, {.momentum = 1.5}, {"1.5"}));
  EXPECT_TRUE(refused(state, {.mask = ones({2, 5, 1})}, {"bools", "f32[2,5,1]"}));
  EXPECT_TRUE(refused(state, {.mask = ones({4, 1}) > 0}, {"bool[4,1]", "f32[2,5,3]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        batch_norm({ones({2}), zeros({3})}, {zeros({2}), ones({2})}, x, true);
      },
      ErrorCode::kInvalidArgument, {"batch_norm_test.cc:", "scale is f32[2]"}));
}

}  // namespace
}  // namespace meshard::nn
