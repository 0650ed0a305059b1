#include "meshard/nn/attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/nn_testutil.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Attentions = OnPlugin;

Attention varied_attention(int width, int heads, int key_heads, int size) {
  Attention params;
  params.query = varied({width, heads, size}, 0.7);
  params.key = varied({width, key_heads, size}, 0.7, 1);
  params.value = varied({width, key_heads, size}, 0.7, 2);
  params.out = varied({heads, size, width}, 0.7, 3);
  return params;
}

// Applies one weight to one position, for one head.
std::vector<double> head_at(const Numbers& x, const Numbers& w, int b, int t, int head, int width,
                            int size) {
  std::vector<double> out(static_cast<std::size_t>(size));
  for (int k = 0; k < size; ++k)
    for (int d = 0; d < width; ++d)
      out[static_cast<std::size_t>(k)] += x({b, t, d}) * w({d, head, k});
  return out;
}

double dot_of(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Attention by its definition, in plain loops.
std::vector<double> by_definition(const Attention& p, const Tensor& input, int heads, int key_heads,
                                  bool causal) {
  Numbers x(input), q(p.query), k(p.key), v(p.value), o(p.out);
  int batch = int(input.dim(0)), time = int(input.dim(1)), width = int(input.dim(2)),
      size = int(p.query.dim(2));
  std::vector<double> out(static_cast<std::size_t>(batch * time * width));
  for (int b = 0; b < batch; ++b)
    for (int t = 0; t < time; ++t)
      for (int h = 0; h < heads; ++h) {
        int group = h / (heads / key_heads), last = causal ? t : time - 1;
        std::vector<double> query = head_at(x, q, b, t, h, width, size), weights,
                            read(query.size());
        double total = 0;
        for (int s = 0; s <= last; ++s) {
          double score = dot_of(query, head_at(x, k, b, s, group, width, size));
          weights.push_back(std::exp(score / std::sqrt(size)));
          total += weights.back();
        }
        for (int s = 0; s <= last; ++s) {
          std::vector<double> value = head_at(x, v, b, s, group, width, size);
          for (std::size_t i = 0; i < read.size(); ++i)
            read[i] += weights[static_cast<std::size_t>(s)] / total * value[i];
        }
        for (int d = 0; d < width; ++d)
          for (int i = 0; i < size; ++i) {
            int at = (b * time + t) * width + d;
            out[static_cast<std::size_t>(at)] += read[static_cast<std::size_t>(i)] * o({h, i, d});
          }
      }
  return out;
}

TEST_F(Attentions, AreTheirDefinition) {
  Tensor x = varied({2, 5, 6}, 1, 4);
  for (int key_heads : {4, 2, 1}) {
    Attention params = varied_attention(6, 4, key_heads, 3);
    expect_near(attention(params, x), by_definition(params, x, 4, key_heads, true), 2e-5);
    expect_near(attention(params, x, {.causal = false}),
                by_definition(params, x, 4, key_heads, false), 2e-5);
  }
}

TEST_F(Attentions, BiasesAreAdded) {
  Attention params = varied_attention(4, 2, 2, 2);
  Tensor x = varied({1, 3, 4});
  Tensor without = attention(params, x);
  params.out_bias = varied({4}, 1, 6);
  expect_same(attention(params, x), without + *params.out_bias, 1e-5);
  // A value bias has the same effect whatever the attention weights are.
  params.out_bias.reset();
  params.value_bias = full({2, 2}, 1.0);
  expect_same(attention(params, x), without + sum(params.out, {0, 1}), 1e-5);
}

class WithACache : public Attentions, public testing::WithParamInterface<std::int64_t> {};

TEST_P(WithACache, AttentionsAreThoseWithout) {
  const std::int64_t batch = GetParam();
  for (std::optional<Rotary> rotary : {std::optional<Rotary>(), std::optional<Rotary>(Rotary{})}) {
    Attending how{.rotary = rotary};
    Attention params = varied_attention(6, 4, 2, 4);
    Tensor x = varied({batch, 7, 6});
    Tensor expected = attention(params, x, how);
    KeyValueCache cache = make_cache({}, params, batch, 9);
    auto step = jit([&](const Tensor& part, const KeyValueCache& c, const Tensor& start) {
      return attention(params, part, c, start, how);
    });
    // Four positions at once, then one at a time.
    std::vector<Tensor> parts;
    for (std::int64_t at = 0; at < 7; at = at == 0 ? 4 : at + 1) {
      Tensor part = index(x, {whole, range(at, at == 0 ? 4 : at + 1)});
      Tensor start = full({batch}, at, DType::i32);
      auto [out, next] = step(part, cache, start);
      parts.push_back(out);
      cache = next;
    }
    expect_same(concat(parts, 1), expected, 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, WithACache, testing::Values(1, 2));

// XLA's CPU compiler copies the cache unless the text avoids it (ops/internal/single_row.h).
TEST_F(Attentions, AStepOfOneRowCopiesNothingOfTheCache) {
  if (runtime_client().platform() != "cpu") GTEST_SKIP() << "about the CPU compiler";
  Attention params = varied_attention(8, 2, 2, 4);
  KeyValueCache cache = make_cache({}, params, 1, 1024);
  auto step = jit([](const Attention& p, const Tensor& x, const KeyValueCache& c,
                     const Tensor& start) { return attention(p, x, c, start); },
                  {.donate = {2}});
  step(params, varied({1, 1, 8}), cache, full({1}, 5, DType::i32));
  pjrt::CompiledMemoryStats memory =
      step.programs().back()->loaded()->executable().executable().memory_stats().value();
  EXPECT_LT(memory.temporaries, cache.key.type().bytes());
}

TEST_F(Attentions, RowsMayStandAtDifferentPositions) {
  Attention params = varied_attention(4, 2, 2, 2);
  Tensor x = varied({2, 4, 4});
  Tensor expected = attention(params, x);
  // Row 0 has seen three positions, row 1 two; both get their next position.
  auto seen = [&](std::int64_t row, std::int64_t count) {
    Tensor alone = index(x, {range(row, row + 1), range(0, count)});
    return attention(params, alone, make_cache({}, params, 1, 5), full({1}, 0)).second;
  };
  KeyValueCache first = seen(0, 3), second = seen(1, 2);
  KeyValueCache cache{concat({first.key, second.key}, 0), concat({first.value, second.value}, 0)};
  Tensor next =
      concat({index(x, {range(0, 1), range(3, 4)}), index(x, {range(1, 2), range(2, 3)})}, 0);
  Tensor out =
      attention(params, next, cache, from_host(std::vector<std::int32_t>{3, 2}, {2})).first;
  expect_same(index(out, {0, 0}), index(expected, {0, 3}), 2e-5);
  expect_same(index(out, {1, 0}), index(expected, {1, 2}), 2e-5);
}

// What is beyond is neither attended to nor read: it is NaN here, and 0 * NaN would be NaN.
TEST_F(Attentions, ReadOnlyTheFirstPositions) {
  Attention params = varied_attention(4, 2, 2, 2);
  Tensor x = varied({2, 3, 4});
  Tensor expected = attention(params, x);
  auto step = jit(
      [&](const Tensor& part, const KeyValueCache& c, const Tensor& start,
          Static<std::int64_t> read) { return attention(params, part, c, start, {.read = read}); });
  KeyValueCache cache = make_cache({}, params, 2, 9);
  Tensor beyond = reshape(arange(9) >= 4, {1, 1, 9, 1});
  for (Tensor* part : {&cache.key, &cache.value})
    *part = where(beyond, std::numeric_limits<float>::quiet_NaN(), *part);
  auto [two, after_two] = step(index(x, {whole, range(0, 2)}), cache, full({2}, 0, DType::i32),
                               Static{std::int64_t{2}});
  auto [third, after_three] = step(index(x, {whole, range(2, 3)}), after_two,
                                   full({2}, 2, DType::i32), Static{std::int64_t{4}});
  expect_same(concat({two, third}, 1), expected, 2e-5);
  EXPECT_TRUE(all(isnan(index(after_three.key, {whole, range(4, 9)}))).item<bool>());
  for (std::int64_t read : {std::int64_t{-1}, std::int64_t{10}})
    EXPECT_TRUE(
        throws_error([&] { attention(params, x, cache, full({2}, 0, DType::i32), {.read = read}); },
                     ErrorCode::kInvalidArgument, {cat("read is ", read), "9 positions"}));
}

// Each device writes and reads its own rows and heads; only the heads' sum crosses devices.
TEST_F(Attentions, AStepWithAShardedCacheMovesNothingOfIt) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 2}}),
                  {{"heads", "model"}, {"key_heads", "model"}, {"batch", "data"}});
  auto made = [](Maker& make) { return make_attention(make, 8, {.heads = 4, .key_heads = 2}); };
  Attention one = create({}, 3, made), four = create(rules, 3, made);
  auto step = jit([](const Attention& params, const Tensor& x, const KeyValueCache& cache,
                     const Tensor& start) { return attention(params, x, cache, start); },
                  {.donate = {2}});
  Tensor x = varied({4, 1, 8});
  Tensor start = from_host(std::vector<std::int32_t>{3, 0, 5, 1}, {4});
  auto [expected, cache] = step(one, x, make_cache({}, one, 4, 6), start);
  auto [out, shards] = step(four, rules.mark(x, P("batch")), make_cache(rules, four, 4, 6),
                            rules.mark(start, P("batch")));
  expect_same(out, expected, 1e-5);
  expect_same(shards.key, cache.key, 1e-5);
  EXPECT_EQ(shards.key.sharding()->spec(), P("data", "model", none, none));
  // The names of the operations are text in the compiled module.
  std::string text =
      step.programs().back()->loaded()->executable().executable().optimized_program().value();
  EXPECT_NE(text.find("all-reduce"), std::string::npos);
  for (const char* collective : {"all-gather", "all-to-all", "collective-permute"})
    EXPECT_EQ(text.find(collective), std::string::npos) << collective;
}

TEST_F(Attentions, ShardedAreTheSame) {
  AxisRules rules(Mesh({{"data", 2}, {"model", 2}}),
                  {{"heads", "model"}, {"key_heads", "model"}, {"batch", "data"}});
  auto made = [](Maker& make) {
    return make_attention(make, 8, {.heads = 4, .key_heads = 2, .bias = true});
  };
  Attention one = create({}, 3, made), four = create(rules, 3, made);
  EXPECT_EQ(four.key.sharding()->spec(), P(none, "model", none));
  EXPECT_EQ(four.out_bias->sharding()->spec(), P(none));
  Tensor x = varied({2, 4, 8});
  auto loss = [&](const Attention& p, const Tensor& in) { return sum(square(attention(p, in))); };
  auto both = jit(value_and_grad<0, 1>(loss));
  auto [loss_one, gradients_one] = both(one, x);
  auto [loss_four, gradients_four] = both(four, rules.mark(x, P("batch", none, none)));
  EXPECT_NEAR(loss_one.item<float>(), loss_four.item<float>(), 1e-4);
  expect_same(std::get<0>(gradients_four).query, std::get<0>(gradients_one).query, 1e-4);
  expect_same(std::get<1>(gradients_four), std::get<1>(gradients_one), 1e-4);
  KeyValueCache cache = make_cache(rules, four, 2, 6);
  EXPECT_EQ(cache.key.sharding()->spec(), P("data", "model", none, none));
}

TEST_F(Attentions, RefuseHeadsThatDoNotFit) {
  Maker make{AxisRules()};
  EXPECT_TRUE(throws_error([&] { make_attention(make, 8, {.heads = 3}); },
                           ErrorCode::kInvalidArgument, {"a width of 8", "3 equal heads"}));
  EXPECT_TRUE(throws_error([&] { make_attention(make, 8, {.heads = 4, .key_heads = 3}); },
                           ErrorCode::kInvalidArgument, {"4 heads", "3 key heads"}));
  Attention params = varied_attention(4, 2, 2, 2);
  EXPECT_TRUE(throws_error(
      [&] {
        attention(params, ones({2, 1, 4}), make_cache({}, params, 2, 4), full({}, 0));
      },
      ErrorCode::kInvalidArgument, {"start is i32[]", "2 rows"}));
}

}  // namespace
}  // namespace meshard::nn
