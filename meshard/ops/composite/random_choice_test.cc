// Tests that need a compiler (for sorting) are in tests/e2e/random_test.cc; tests/conformance
// compares with JAX's numbers.
#include "meshard/ops/composite/random_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/random.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

template <class T>
std::set<T> whole_numbers(std::int64_t low, std::int64_t high, std::int64_t count = 2000) {
  std::vector<T> values =
      interpret(random::randint(random::key(3), {count}, low, high, dtype_of<T>()))
          .template to_vector<T>();
  return {values.begin(), values.end()};
}

TEST(RandomChoice, RandintGivesTheWholeRangeAndNothingElse) {
  EXPECT_EQ(whole_numbers<std::int32_t>(-2, 3), (std::set<std::int32_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(whole_numbers<std::int8_t>(-2, 1), (std::set<std::int8_t>{-2, -1, 0}));
  EXPECT_EQ(whole_numbers<std::uint64_t>(5, 7), (std::set<std::uint64_t>{5, 6}));
  EXPECT_EQ(whole_numbers<std::uint8_t>(0, 256, 6000).size(), 256u);
  EXPECT_EQ(whole_numbers<std::int8_t>(126, 1000), (std::set<std::int8_t>{126, 127}));
  EXPECT_EQ(whole_numbers<std::uint16_t>(-9, 1), (std::set<std::uint16_t>{0}));
}

TEST(RandomChoice, AnEmptyRangeIsItsLowBound) {
  EXPECT_EQ(whole_numbers<std::int32_t>(4, 4), (std::set<std::int32_t>{4}));
  EXPECT_EQ(whole_numbers<std::int64_t>(4, -4), (std::set<std::int64_t>{4}));
}

TEST(RandomChoice, RademacherIsASign) {
  auto got = interpret(random::rademacher(random::key(4), {500}, DType::f32)).to_vector<float>();
  EXPECT_EQ(std::set<float>(got.begin(), got.end()), (std::set<float>{-1, 1}));
}

TEST(RandomChoice, GeometricCountsTrials) {
  auto got = interpret(random::geometric(random::key(4), 0.25, {4000})).to_vector<std::int32_t>();
  double sum = 0;
  for (std::int32_t trials : got) {
    EXPECT_GE(trials, 1);
    sum += trials;
  }
  EXPECT_NEAR(sum / 4000, 4, 0.3);  // the mean is 1/p, its standard deviation here 0.055
}

TEST(RandomChoice, ShapesFollowTheArguments) {
  Tensor key = random::key(1), x = from_host(std::vector<float>(24), {2, 3, 4});
  TensorType places{DType::i32, {3, 4}};
  EXPECT_EQ(random::permutation(key, 7).type(), (TensorType{DType::i32, {7}}));
  EXPECT_EQ(random::permutation(key, 0).type(), (TensorType{DType::i32, {0}}));
  EXPECT_EQ(random::permutation(key, x, 1).type(), x.type());
  EXPECT_EQ(random::shuffle(key, x, -1).type(), x.type());
  EXPECT_EQ(random::categorical(key, x, 0).type(), places);
  EXPECT_EQ(random::categorical(key, x, 0, Shape{5, 3, 4}).type(),
            (TensorType{DType::i32, {5, 3, 4}}));
  EXPECT_EQ(random::categorical(key, x, 2, Shape{3, 2, 3}, false).type(),
            (TensorType{DType::i32, {3, 2, 3}}));
  EXPECT_EQ(random::choice(key, x, {5, 1}, {.dimension = 2}).type(),
            (TensorType{DType::f32, {2, 3, 5, 1}}));
  EXPECT_EQ(random::choice(key, 4, {2, 2}, {.replace = false}).type(),
            (TensorType{DType::i32, {2, 2}}));
  EXPECT_EQ(random::choice(key, 0, {0, 3}).type(), (TensorType{DType::i32, {0, 3}}));
}

TEST(RandomChoice, ErrorsNameWhatWasGiven) {
  Tensor key = random::key(1), x = from_host(std::vector<float>(6), {2, 3});
  auto refused = [](auto call, std::vector<std::string> words) {
    return throws_error(call, ErrorCode::kInvalidArgument, words);
  };
  EXPECT_TRUE(
      refused([&] { random::randint(key, {2}, 0, 5, DType::f32); }, {"[random.randint]", "f32"}));
  EXPECT_TRUE(
      refused([&] { random::rademacher(key, {2}, DType::u8); }, {"[random.rademacher]", "u8"}));
  EXPECT_TRUE(refused([&] { random::permutation(key, -1); }, {"[random.permutation]", "-1"}));
  EXPECT_TRUE(refused([&] { random::permutation(x, 3); }, {"a key must be u32[2], not f32[2,3]"}));
  EXPECT_TRUE(refused([&] { random::shuffle(key, 3); }, {"[random.shuffle]", "rank 1 or more"}));
  EXPECT_TRUE(refused([&] { random::categorical(key, x, 1, Shape{3}); }, {"[3]", "f32[2,3]"}));
  EXPECT_TRUE(refused(
      [&] {
        random::categorical(key, x, 1, Shape{4, 2}, false);
      },
      {"cannot draw 4", "3"}));
  EXPECT_TRUE(refused([&] { random::choice(key, 0, {2}); },
                      {"cannot draw 2 elements from an empty range"}));
  EXPECT_TRUE(
      refused([&] { random::choice(key, 3, {4}, {.replace = false}); }, {"cannot draw 4", "3"}));
  EXPECT_TRUE(
      refused([&] { random::choice(key, 4, {2}, {.probabilities = x}); }, {"4", "f32[2,3]"}));
}

}  // namespace
}  // namespace meshard
