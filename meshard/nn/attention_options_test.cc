#include <gmock/gmock.h>

#include <cmath>

#include "meshard/nn/attention.h"
#include "meshard/nn/nn_testutil.h"
#include "meshard/ops/definition/capped_attention.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using AttentionOptionsOfLayers = OnPlugin;

constexpr int kOwnWidth = 5, kMemoryWidth = 4, kHeads = 4, kKeyHeads = 2, kSize = 3, kKeys = 6;

Attention optional_attention(int memory_width) {
  Attention params;
  params.query = varied({kOwnWidth, kHeads, kSize}, 0.7);
  params.key = varied({memory_width, kKeyHeads, kSize}, 0.7, 1);
  params.value = varied({memory_width, kKeyHeads, kSize}, 0.7, 2);
  params.out = varied({kHeads, kSize, kOwnWidth}, 0.7, 3);
  params.query_scale = varied({kSize}, 1, 4) + 1.5;
  params.key_scale = varied({kSize}, 1, 5) + 1.5;
  return params;
}

// The elements of one head at one position, normalized.
std::vector<double> head_of(const Numbers& x, const Numbers& w, int b, int t, int head, int width,
                            const std::optional<Tensor>& scale, QkNorm form) {
  std::vector<double> out(kSize);
  for (int k = 0; k < kSize; ++k)
    for (int d = 0; d < width; ++d)
      out[static_cast<std::size_t>(k)] += x({b, t, d}) * w({d, head, k});
  if (!scale) return out;
  double mean = 0, square = 0;
  if (form == QkNorm::kLayer)
    for (double each : out) mean += each / kSize;
  for (double each : out) square += (each - mean) * (each - mean) / kSize;
  Numbers scales(*scale);
  for (int k = 0; k < kSize; ++k) {
    double& each = out[static_cast<std::size_t>(k)];
    each = (each - mean) / std::sqrt(square + 1e-6) * scales({k});
  }
  return out;
}

// Attention by its definition, in plain loops. mask is [batch, 1, time, keys], bias [heads, time,
// keys].
std::vector<double> by_loops(const Attention& p, const Tensor& input, const Tensor& memory,
                             const Attending& how) {
  Numbers x(input), m(memory), q(p.query), k(p.key), v(p.value), o(p.out);
  int batch = int(input.dim(0)), time = int(input.dim(1)), keys = int(memory.dim(1)),
      memory_width = int(memory.dim(2));
  std::optional<Numbers> mask, bias;
  if (how.mask.defined()) mask.emplace(how.mask);
  if (how.bias.defined()) bias.emplace(how.bias);
  std::vector<double> out(static_cast<std::size_t>(batch * time * kOwnWidth));
  for (int b = 0; b < batch; ++b)
    for (int t = 0; t < time; ++t)
      for (int h = 0; h < kHeads; ++h) {
        int group = h / (kHeads / kKeyHeads);
        auto query = head_of(x, q, b, t, h, kOwnWidth, p.query_scale, how.qk_norm);
        std::vector<double> weights(static_cast<std::size_t>(keys)), read(kSize);
        double total = 0;
        for (int s = 0; s < keys; ++s) {
          bool seen = !(how.causal.value_or(false) && s > t);
          if (how.left_window && s < t - *how.left_window) seen = false;
          if (how.right_window && s > t + *how.right_window) seen = false;
          if (mask && (*mask)({b, 0, t, s}) == 0) seen = false;
          if (!seen) continue;
          auto key = head_of(m, k, b, s, group, memory_width, p.key_scale, how.qk_norm);
          double score = 0;
          for (std::size_t i = 0; i < kSize; ++i) score += query[i] * key[i];
          score *= how.scale.value_or(1 / std::sqrt(kSize));
          if (how.soft_cap) score = *how.soft_cap * std::tanh(score / *how.soft_cap);
          if (bias) score += (*bias)({h, t, s});
          total += weights[static_cast<std::size_t>(s)] = std::exp(score);
        }
        for (int s = 0; s < keys; ++s) {
          auto value = head_of(m, v, b, s, group, memory_width, std::nullopt, how.qk_norm);
          for (std::size_t i = 0; i < kSize; ++i)
            read[i] += weights[static_cast<std::size_t>(s)] / total * value[i];
        }
        for (int d = 0; d < kOwnWidth; ++d)
          for (int i = 0; i < kSize; ++i)
            out[static_cast<std::size_t>((b * time + t) * kOwnWidth + d)] +=
                read[static_cast<std::size_t>(i)] * o({h, i, d});
      }
  return out;
}

TEST_F(AttentionOptionsOfLayers, AreTheirDefinition) {
  Tensor x = varied({2, kKeys, kOwnWidth}, 1, 6), memory = varied({2, kKeys, kMemoryWidth}, 1, 7);
  // Each query keeps its own position.
  Tensor places = iota(DType::i32, {2, 1, kKeys, kKeys}, 3);
  Tensor mask = logical_or(varied({2, 1, kKeys, kKeys}, 1, 8) > 0,
                           equal(places, iota(DType::i32, {2, 1, kKeys, kKeys}, 2)));
  Tensor bias = varied({kHeads, kKeys, kKeys}, 1, 9);
  Attention self = optional_attention(kOwnWidth), cross = optional_attention(kMemoryWidth);
  Attention plain = self;
  plain.query_scale.reset();
  plain.key_scale.reset();
  const std::vector<Attending> all{
      {.qk_norm = QkNorm::kLayer, .scale = 0.8},
      {.causal = true, .qk_norm = QkNorm::kRms, .soft_cap = 1.5},
      {.causal = false, .left_window = 2, .right_window = 1, .mask = mask, .bias = bias},
      {.left_window = 1, .bias = bias, .soft_cap = 0.5},
  };
  for (const Attending& how : all) {
    SCOPED_TRACE(&how - &all[0]);
    Attending of_self = how;
    of_self.causal = how.causal.value_or(true);
    expect_near(attention(self, x, how), by_loops(self, x, x, of_self), 3e-5);
    expect_near(attention(plain, x, how), by_loops(plain, x, x, of_self), 3e-5);
    expect_near(cross_attention(cross, x, memory, how), by_loops(cross, x, memory, how), 3e-5);
  }
}

// With a cache, windows are around the positions of each row.
TEST_F(AttentionOptionsOfLayers, HoldWithACache) {
  Attention params = optional_attention(kOwnWidth);
  Tensor x = varied({2, kKeys, kOwnWidth}, 1, 6);
  Tensor mask = logical_or(
      varied({2, 1, kKeys, kKeys}, 1, 8) > 0,
      equal(iota(DType::i32, {2, 1, kKeys, kKeys}, 3), iota(DType::i32, {2, 1, kKeys, kKeys}, 2)));
  Attending how{
      .qk_norm = QkNorm::kRms, .scale = 0.7, .left_window = 2, .mask = mask, .soft_cap = 1};
  Tensor expected = attention(params, x, how);
  KeyValueCache cache = make_cache({}, params, 2, kKeys);
  std::vector<Tensor> parts;
  for (int at : {0, 3, 4}) {
    int end = at == 0 ? 3 : at == 3 ? 4 : kKeys;
    how.mask = index(mask, {whole, whole, range(at, end)});
    auto [part, next] =
        attention(params, index(x, {whole, range(at, end)}), cache, full({2}, at, DType::i32), how);
    parts.push_back(part);
    cache = next;
  }
  expect_same(concat(parts, 1), expected, 2e-5);
}

TEST_F(AttentionOptionsOfLayers, AreMadeByTheirRules) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 4}}),
                  {{"heads", "model"}, {"key_heads", "model"}, {"batch", "data"}});
  auto made = [](Maker& make) {
    return make_attention(make, 8, {.heads = 4, .memory_width = 6, .qk_norm = true});
  };
  Attention one = create({}, 3, made), eight = create(rules, 3, made);
  EXPECT_EQ(eight.key.shape(), (Shape{6, 4, 2}));
  EXPECT_EQ(eight.key.sharding()->spec(), P(none, "model", none));
  expect_near(*one.query_scale, {1, 1});
  expect_near(*one.key_scale, {1, 1});
  Tensor x = varied({3, 5, 8}), memory = varied({3, 4, 6});
  auto step = jit([](const Attention& params, const Tensor& in, const Tensor& seen) {
    return cross_attention(params, in, seen, {.soft_cap = 3});
  });
  expect_same(step(eight, rules.mark(x, P("batch")), rules.mark(memory, P("batch"))),
              step(one, x, memory), 1e-5);
}

TEST_F(AttentionOptionsOfLayers, RefuseWhatDoesNotFit) {
  Attention params = optional_attention(kMemoryWidth);
  Tensor x = ones({2, 3, kOwnWidth}), memory = ones({2, 3, kMemoryWidth});
  auto refused = [&](const Tensor& seen, const Attending& how,
                     const std::vector<std::string>& words) {
    return throws_error([&] { (void)cross_attention(params, x, seen, how); },
                        ErrorCode::kInvalidArgument, words);
  };
  EXPECT_TRUE(refused(x, {}, {"attention_options_test.cc:", "f32[2,3,5]", "keys, 4"}));
  EXPECT_TRUE(refused(memory, {.soft_cap = 0}, {"soft_cap = 0"}));
  EXPECT_TRUE(refused(memory, {.read = 2}, {"read is 2"}));
  EXPECT_TRUE(refused(memory, {.left_window = -1}, {"-1"}));
  EXPECT_TRUE(refused(memory, {.mask = ones({3})}, {"bools", "f32[3]"}));
  EXPECT_TRUE(throws_error([&] { (void)attention(optional_attention(kOwnWidth), x, {.read = 2}); },
                           ErrorCode::kInvalidArgument, {"read is 2", "no cache"}));
  Maker make{AxisRules()};
  EXPECT_TRUE(throws_error([&] { make_attention(make, 8, {.memory_width = -1}); },
                           ErrorCode::kInvalidArgument, {"memory_width of -1"}));
}

}  // namespace
}  // namespace meshard::nn
