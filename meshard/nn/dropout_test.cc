#include <algorithm>

#include "meshard/nn/nn_testutil.h"
#include "meshard/nn/norm.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Dropout = OnPlugin;

TEST_F(Dropout, DropsAPartAndScalesTheRest) {
  Tensor x = ones({100, 100});
  std::vector<float> out = dropout(x, 0.2, random::key(1)).to_vector<float>();
  auto dropped = std::count(out.begin(), out.end(), 0.0f);
  EXPECT_NEAR(double(dropped), 2000, 200) << "five deviations of a binomial: 5 * 40";
  EXPECT_EQ(std::count(out.begin(), out.end(), 1.25f), 10000 - dropped);
  EXPECT_EQ(
      out,
      dropout(mark_sharding(x, Mesh({{"x", 4}}), P("x")), 0.2, random::key(1)).to_vector<float>());
  EXPECT_NE(out, dropout(x, 0.2, random::key(2)).to_vector<float>());
}

// Numbers of jax.random.bernoulli(jax.random.key(3), 0.6, (2, 1, 1, 5)), as flax's Dropout with
// broadcast_dims draws them.
TEST_F(Dropout, DropsWholeSlices) {
  Tensor x = varied({2, 3, 4, 5}) + 2;
  Tensor features = dropout(x, 0.4, random::key(3), {1, -2});
  Tensor kept = from_host<float>({1, 0, 0, 0, 1, 1, 1, 1, 1, 1}, {2, 1, 1, 5});
  expect_same(features, x * kept / 0.6, 1e-5);
  // The same elements of all samples.
  Tensor alike = not_equal(dropout(x, 0.4, random::key(3), {0}), 0);
  EXPECT_TRUE(all(equal(index(alike, {0}), index(alike, {1}))).item<bool>());
  EXPECT_TRUE(any(alike).item<bool>());
  EXPECT_FALSE(all(alike).item<bool>());
  expect_same(
      dropout(x, 0.4, random::key(3), {1, 2}),
      dropout(mark_sharding(x, Mesh({{"x", 4}}), P(none, none, "x")), 0.4, random::key(3), {1, 2}));
  expect_same(dropout(x, 1, random::key(3), {0}), zeros({2, 3, 4, 5}));
  EXPECT_TRUE(throws_error([&] { dropout(x, 0.5, random::key(1), {4}); }, ErrorCode::kOutOfRange,
                           {"dropout_test.cc:", "4"}));
}

TEST_F(Dropout, WithoutAKeyNothingIsDropped) {
  Tensor x = varied({8});
  EXPECT_EQ(dropout(x, 0.5, std::nullopt).value(), x.value());
  EXPECT_TRUE(
      throws_error([&] { dropout(x, 1.5, random::key(1)); }, ErrorCode::kInvalidArgument, {"1.5"}));
}

}  // namespace
}  // namespace meshard::nn
