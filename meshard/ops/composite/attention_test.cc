#include "meshard/ops/composite/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "meshard/graph/leaf.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
namespace {

constexpr std::int64_t kBatch = 2, kTime = 4, kSize = 3;

// Attention by its formula, in plain loops. `added` takes batch, head, query and key, and returns
// what is added to the scaled product (-INFINITY: masked out).
using AddedScore = std::function<double(int, int, int, int)>;
std::vector<double> by_loops(const HostArray& q, const HostArray& k, const HostArray& v,
                             double scale, const AddedScore& added) {
  std::int64_t heads = q.shape()[2], shared = heads / k.shape()[2], values = v.shape()[3];
  std::int64_t queries = q.shape()[1], keys = k.shape()[1];
  std::vector<double> out;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t t = 0; t < queries; ++t)
      for (std::int64_t h = 0; h < heads; ++h) {
        std::vector<double> powers, mixed(static_cast<std::size_t>(values), 0);
        double all = 0;
        for (std::int64_t s = 0; s < keys; ++s) {
          double score = 0;
          for (std::int64_t d = 0; d < kSize; ++d)
            score += q.at<double>({b, t, h, d}) * k.at<double>({b, s, h / shared, d});
          score = scale * score + added(static_cast<int>(b), static_cast<int>(h),
                                        static_cast<int>(t), static_cast<int>(s));
          powers.push_back(std::exp(score));
          all += powers.back();
        }
        for (std::int64_t s = 0; s < keys; ++s)
          for (std::int64_t e = 0; e < values; ++e)
            mixed[static_cast<std::size_t>(e)] +=
                powers[static_cast<std::size_t>(s)] / all * v.at<double>({b, s, h / shared, e});
        out.insert(out.end(), mixed.begin(), mixed.end());
      }
  return out;
}

struct Call {
  HostArray q, k, v;
  explicit Call(std::int64_t key_heads, std::int64_t values = 2) {
    SampleSource source(7);
    q = source.uniform(DType::f64, {kBatch, kTime, 4, kSize});
    k = source.uniform(DType::f64, {kBatch, kTime + 1, key_heads, kSize});
    v = source.uniform(DType::f64, {kBatch, kTime + 1, key_heads, values});
  }
  void expect(const AttentionOptions& options, double scale, const AddedScore& added) const {
    Tensor result = dot_product_attention(from_host(q), from_host(k), from_host(v), options);
    ASSERT_EQ(result.shape(), (Shape{kBatch, kTime, 4, v.shape()[3]}));
    std::vector<double> expected = by_loops(q, k, v, scale, added);
    std::vector<double> got = interpret(result).to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
    AttentionOptions by_heads = options;
    by_heads.keys_by_heads = true;
    auto turned = [](const HostArray& x) { return permute_dims(from_host(x), {0, 2, 1, 3}); };
    Tensor same = dot_product_attention(from_host(q), turned(k), turned(v), by_heads);
    EXPECT_EQ(interpret(same).to_vector<double>(), got);
  }
};

double seen_if(bool seen) { return seen ? 0 : -INFINITY; }
const double kUsualScale = 1 / std::sqrt(3.0);

TEST(Attention, IsTheFormula) {
  Call(4).expect({}, kUsualScale, [](int, int, int, int) { return 0; });
  Call(4).expect({.scale = 0.25}, 0.25, [](int, int, int, int) { return 0; });
}

TEST(Attention, NeighboringHeadsShareAKeyHead) {
  Call(2).expect({}, kUsualScale, [](int, int, int, int) { return 0; });
  Call(1).expect({.causal = true}, kUsualScale,
                 [](int, int, int t, int s) { return seen_if(s <= t); });
}

TEST(Attention, CausalAndWindows) {
  for (std::int64_t heads : {4, 2}) {
    Call call(heads);
    call.expect({.causal = true}, kUsualScale,
                [](int, int, int t, int s) { return seen_if(s <= t); });
    call.expect({.left_window = 1, .right_window = 2}, kUsualScale,
                [](int, int, int t, int s) { return seen_if(s >= t - 1 && s <= t + 2); });
    call.expect({.causal = true, .left_window = 1, .right_window = 2}, kUsualScale,
                [](int, int, int t, int s) { return seen_if(s >= t - 1 && s <= t); });
    call.expect({.causal = true, .first_query = from_host(std::vector<std::int32_t>{1}, {})},
                kUsualScale, [](int, int, int t, int s) { return seen_if(s <= t + 1); });
  }
}

TEST(Attention, MasksAndBiases) {
  SampleSource source(9);
  for (std::int64_t heads : {4, 2}) {
    Call call(heads);
    HostArray by_head = source.uniform(DType::f64, {4, kTime, kTime + 1});
    call.expect({.bias = from_host(by_head)}, kUsualScale, [&](int, int h, int t, int s) {
      return by_head.at<double>({h, t, s});
    });
    HostArray by_key = source.uniform(DType::f64, {kBatch, 1, 1, kTime + 1});
    call.expect({.bias = from_host(by_key)}, kUsualScale, [&](int b, int, int, int s) {
      return by_key.at<double>({b, 0, 0, s});
    });
    // The last key is padding.
    HostArray padded = HostArray::from_vector<std::int32_t>({1, 1, 1, 1, 0});
    call.expect({.causal = true, .mask = from_host(padded.astype(DType::bool_))}, kUsualScale,
                [](int, int, int t, int s) { return seen_if(s <= t && s < 4); });
    HostArray of_head =
        HostArray::from_vector<std::int32_t>({1, 0, 1, 1}, {4, 1, 1}).astype(DType::bool_);
    Tensor first_key =
        from_host(HostArray::from_vector<std::int32_t>({1, 0, 0, 0, 0}).astype(DType::bool_));
    Tensor either = logical_or(from_host(of_head), first_key);
    call.expect({.mask = either}, kUsualScale,
                [](int, int h, int, int s) { return seen_if(h != 1 || s == 0); });
  }
}

TEST(Attention, ARowThatSeesNothingIsTheMean) {
  Call call(4);
  Tensor nothing = zeros({1, 1, 1, kTime + 1}, DType::bool_);
  Tensor result = dot_product_attention(from_host(call.q), from_host(call.k), from_host(call.v),
                                        {.mask = nothing});
  double mean = 0;
  for (std::int64_t s = 0; s <= kTime; ++s) mean += call.v.at<double>({0, s, 0, 0}) / (kTime + 1);
  EXPECT_NEAR(interpret(result).at<double>({0, 0, 0, 0}), mean, 1e-12);
}

TEST(Attention, TypesAndErrors) {
  Tensor q = input({2, 8, 4, 16}, DType::bf16), k = input({2, 8, 2, 16}, DType::bf16);
  EXPECT_EQ(dot_product_attention(q, k, k).type(), q.type());
  auto fails = [&](const Tensor& query, const Tensor& key, const Tensor& value,
                   const AttentionOptions& options, std::vector<std::string> parts) {
    return throws_error([&] { dot_product_attention(query, key, value, options); },
                        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails(q, input({2, 8, 3, 16}), input({2, 8, 3, 16}), {},
                    {"attention_test.cc:", "not a multiple", "bf16[2,8,4,16]", "f32[2,8,3,16]"}));
  EXPECT_TRUE(fails(q, k, input({2, 7, 2, 16}), {}, {"numbers of keys and values differ"}));
  EXPECT_TRUE(fails(q, input({2, 8, 2, 8}), k, {}, {"different head sizes"}));
  EXPECT_TRUE(fails(q, k, input({2, 8, 4, 16}), {}, {"different numbers of heads"}));
  EXPECT_TRUE(fails(input({8, 4, 16}), k, k, {}, {"[batch, time, heads, size]"}));
  EXPECT_TRUE(fails(q, k, k, {.mask = input({8, 8})}, {"of bools", "f32[8,8]"}));
  EXPECT_TRUE(fails(q, k, k, {.bias = input({3, 8, 8})}, {"bias f32[3,8,8]", "[2, 4, 8, 8]"}));
  EXPECT_TRUE(fails(q, k, k, {.left_window = -1}, {"-1"}));
  EXPECT_TRUE(fails(q, k, k, {.causal = true, .first_query = input({2}, DType::i32)}, {"i32[2]"}));
}

TEST(Rotary, TurnsPairsByTheirAngle) {
  HostArray x = HostArray::from_vector<double>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 1, 4});
  Tensor positions = from_host<std::int32_t>({0, 3}, {2});
  // Frequencies 1 and 100^(-2/4) = 0.1; position 3: angles 3 and 0.3.
  std::vector<double> halves =
      interpret(rotary_embedding(from_host(x), positions, RotaryForm::kHalves, 100))
          .to_vector<double>();
  std::vector<double> pairs =
      interpret(rotary_embedding(from_host(x), positions, RotaryForm::kPairs, 100))
          .to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(halves[i], static_cast<double>(i) + 1) << "position 0 turns nothing";
    EXPECT_EQ(pairs[i], static_cast<double>(i) + 1);
  }
  auto expect_turned = [](double a, double b, double angle, double first, double second) {
    EXPECT_NEAR(first, a * std::cos(angle) - b * std::sin(angle), 1e-12);
    EXPECT_NEAR(second, b * std::cos(angle) + a * std::sin(angle), 1e-12);
  };
  expect_turned(5, 7, 3, halves[4], halves[6]);
  expect_turned(6, 8, 0.3, halves[5], halves[7]);
  expect_turned(5, 6, 3, pairs[4], pairs[5]);
  expect_turned(7, 8, 0.3, pairs[6], pairs[7]);
  // Only the first two elements of a head.
  std::vector<double> part =
      interpret(rotary_embedding(from_host(x), positions, RotaryForm::kPairs, 100, 2))
          .to_vector<double>();
  expect_turned(5, 6, 3, part[4], part[5]);
  EXPECT_EQ(part[6], 7);
}

TEST(Rotary, TypesAndErrors) {
  Tensor x = input({2, 8, 4, 16}, DType::bf16);
  EXPECT_EQ(rotary_embedding(x, input({8}, DType::i32)).type(), x.type());
  EXPECT_EQ(rotary_embedding(x, input({2, 8}, DType::i32)).type(), x.type());
  EXPECT_TRUE(throws_error(
      [] {
        rotary_embedding(input({8, 4, 5}), input({8}));
      },
      ErrorCode::kInvalidArgument, {"5 elements", "f32[8,4,5]"}));
  EXPECT_TRUE(throws_error([&] { rotary_embedding(x, input({7}, DType::i32)); },
                           ErrorCode::kInvalidArgument, {"positions f32[7]", "bf16[2,8,4,16]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        rotary_embedding(x, input({3, 1, 8}, DType::i32));
      },
      ErrorCode::kInvalidArgument, {"do not broadcast"}));
}

}  // namespace
}  // namespace meshard
