#include "meshard/ops/composite/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Json = nlohmann::json;

// JAX's results in tests/golden/jax/random.json, located relative to this file.
const Json& golden() {
  static const Json data = [] {
    std::string path = __FILE__;
    path.resize(path.rfind("meshard/ops/"));
    std::ifstream file(path + "tests/golden/jax/random.json");
    return Json::parse(file);
  }();
  return data;
}

Shape shape_of(const Json& params) {
  return Shape(params.at("shape").get<std::vector<std::int64_t>>());
}

Tensor word(const Json& value) { return from_host(HostArray::scalar(value.get<std::uint32_t>())); }

// Computes what the case asks for; returns false for kinds that are not tested here.
bool compute(const Json& test, std::vector<Tensor>& out) {
  const Json& params = test.at("params");
  std::string id = test.at("id"), what = test.at("what");
  if (id.starts_with("block_")) {
    Tensor key = from_host(params.at("key").get<std::vector<std::uint32_t>>(), {2});
    auto [first, second] =
        random::threefry(key, word(params.at("counter")[0]), word(params.at("counter")[1]));
    out = {first, second};
    return true;
  }
  Tensor key = random::key(params.at("seed").get<std::int64_t>());
  if (what == "key data of a seed")
    out = {key};
  else if (what == "split")
    out = random::split(key, params.at("num"));
  else if (what == "fold_in")
    out = {random::fold_in(key, params.at("data").get<int>())};
  else if (what == "32-bit words")
    out = {random::bits(key, shape_of(params))};
  else if (what == "narrow words")
    out = {random::bits(key, shape_of(params),
                        params.at("dtype") == "uint8" ? DType::u8 : DType::u16)};
  else if (what == "uniform bfloat16")
    out = {random::uniform(key, shape_of(params), DType::bf16)};
  else if (what.starts_with("uniform"))
    out = {random::uniform(key, shape_of(params), DType::f32, params.value("minval", 0.0),
                           params.value("maxval", 1.0))};
  else if (what == "standard normal float32")
    out = {random::normal(key, shape_of(params))};
  else if (what.starts_with("bernoulli"))
    out = {random::bernoulli(key, params.at("p").get<double>(), shape_of(params))};
  else
    return false;
  return true;
}

TEST(Random, IsWhatJaxGives) {
  int cases = 0;
  for (const Json& test : golden().at("cases")) {
    SCOPED_TRACE(test.at("id").get<std::string>());
    std::vector<Tensor> got;
    if (!compute(test, got)) continue;  // of another header; tested in tests/conformance
    std::vector<double> values, expected;
    for (const Tensor& tensor : got)
      for (double value : interpret(tensor).astype(DType::f64).to_vector<double>())
        values.push_back(value);
    for (const Json& value : test.at("outputs")[0].at("data"))
      expected.push_back(value.is_boolean() ? value.get<bool>() : value.get<double>());
    ASSERT_EQ(values.size(), expected.size());
    bool normal = test.at("what") == "standard normal float32";
    bool scaled = test.at("params").contains("minval");
    bool f32 = test.at("outputs")[0].at("dtype") == "float32";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (normal)  // implementations round erf_inv differently
        EXPECT_NEAR(values[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << i;
      else if (scaled)  // XLA fuses multiplying by 5 and adding: one rounding less
        EXPECT_NEAR(values[i], expected[i], 5 * 0x1p-24) << i;
      else if (f32)  // nine digits in the file identify one float
        EXPECT_EQ(static_cast<float>(values[i]), static_cast<float>(expected[i])) << i;
      else
        EXPECT_EQ(values[i], expected[i]) << i;
    }
    ++cases;
  }
  EXPECT_GE(cases, 60);
}

TEST(Random, AValueDependsOnItsPositionOnly) {
  Tensor key = random::key(7);
  EXPECT_EQ(interpret(random::bits(key, {12})).to_vector<std::uint32_t>(),
            interpret(random::bits(key, {3, 1, 4})).to_vector<std::uint32_t>());
}

TEST(Random, WideBitsAreBothWordsOfTheBlock) {
  // Position 0 under key (0, 42); the golden case for counter (0, 1) is position 1.
  auto wide = interpret(random::bits(random::key(42), {2}, DType::u64)).to_vector<std::uint64_t>();
  EXPECT_EQ(wide[1], std::uint64_t{64467757} << 32 | 2916123636u);
}

TEST(Random, WideFloatsFillTheirMantissa) {
  auto wide = interpret(random::uniform(random::key(1), {64}, DType::f64)).to_vector<double>();
  auto bits = interpret(random::bits(random::key(1), {64}, DType::u64)).to_vector<std::uint64_t>();
  for (std::size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(wide[i], static_cast<double>(bits[i] >> 12) * 0x1p-52);
}

TEST(Random, SplitIsFoldingInTheNumber) {
  Tensor key = random::key(3);
  std::vector<Tensor> keys = random::split(key, 3);
  ASSERT_EQ(keys.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(interpret(keys[static_cast<std::size_t>(i)]), interpret(random::fold_in(key, i)));
}

// Keys of the host are derived by other code than recorded ones.
TEST(Random, RecordedKeysGiveWhatKeysOfTheHostGive) {
  Tensor key = random::key(1234567890123), recorded = add(key, 0);
  std::vector<Tensor> here = random::split(key, 4), there = random::split(recorded, 4);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(here[i].value()->op().name, "array");
    EXPECT_NE(there[i].value()->op().name, "array");
    EXPECT_EQ(interpret(here[i]), interpret(there[i]));
  }
  for (std::int64_t number :
       {std::int64_t{0}, std::int64_t{7}, std::int64_t{-1}, (std::int64_t{5} << 32) + 6}) {
    Tensor tensor = from_host(HostArray::scalar(number));
    EXPECT_EQ(interpret(random::fold_in(key, tensor)),
              interpret(random::fold_in(recorded, tensor)));
  }
}

TEST(Random, KeysInAShapeAreThoseOfSplit) {
  Tensor key = random::key(3);
  std::vector<Tensor> keys = random::split(key, 6);
  Tensor all = random::split_into(key, {2, 3});
  EXPECT_EQ(all.type(), (TensorType{DType::u32, {2, 3, 2}}));
  auto words = interpret(all).to_vector<std::uint32_t>();
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(interpret(keys[i]),
              HostArray::from_vector<std::uint32_t>({words[2 * i], words[2 * i + 1]}));
}

TEST(Random, SeedsAndStepsAreData) {
  EXPECT_EQ(random::key(3).value()->op().name, "array");
  Tensor step = from_host(HostArray::scalar(std::int32_t{12345}));
  EXPECT_EQ(interpret(random::fold_in(random::key(0), step)),
            interpret(random::fold_in(random::key(0), 12345)));
  // A seed of more than 32 bits fills both words.
  EXPECT_EQ(interpret(random::key((std::int64_t{5} << 32) + 6)),
            HostArray::from_vector<std::uint32_t>({5, 6}));
}

TEST(Random, ErrorsNameWhatWasGiven) {
  Tensor key = random::key(1);
  EXPECT_TRUE(throws_error(
      [] {
        random::bits(from_host<float>({1, 2}, {2}), {2});
      },
      ErrorCode::kInvalidArgument,
      {"random_test.cc", "[random.bits] a key must be u32[2], not f32[2]"}));
  EXPECT_TRUE(throws_error([] { random::normal(42, {2}); }, ErrorCode::kInvalidArgument,
                           {"a key must be u32[2], not a number: use random::key"}));
  EXPECT_TRUE(throws_error([&] { random::uniform(key, {2}, DType::i32); },
                           ErrorCode::kInvalidArgument, {"[random.uniform]", "not i32"}));
  EXPECT_TRUE(throws_error([&] { random::bits(key, {2}, DType::i32); }, ErrorCode::kInvalidArgument,
                           {"[random.bits]", "not i32"}));
  EXPECT_TRUE(throws_error([&] { random::fold_in(key, 0.5); }, ErrorCode::kInvalidArgument,
                           {"[random.fold_in] takes a whole number"}));
  EXPECT_TRUE(throws_error([&] { random::split(key, -1); }, ErrorCode::kInvalidArgument,
                           {"[random.split] count = -1"}));
}

}  // namespace
}  // namespace meshard
