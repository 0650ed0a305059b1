#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/op_samples/op_samples.h"

namespace meshard {
namespace {

// The first numbers of SplitMix64 from seed 0, as published with the xoshiro generators
// (prng.di.unimi.it/splitmix64.c; the same values are java.util.SplittableRandom's).
TEST(SampleSource, IsSplitMix64) {
  SampleSource source(0);
  EXPECT_EQ(source.next(), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(source.next(), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(source.next(), 0x06C45D188009454Fu);
}

TEST(SampleSource, RepeatsFromItsSeed) {
  SampleSource a(7), b(7), c(8);
  HostArray first = a.uniform(DType::f32, {4, 8});
  EXPECT_EQ(first, b.uniform(DType::f32, {4, 8}));
  EXPECT_FALSE(first == c.uniform(DType::f32, {4, 8}));
  EXPECT_FALSE(first == a.uniform(DType::f32, {4, 8}));
}

TEST(SampleSource, UniformFillsItsRange) {
  SampleSource source(1);
  HostArray floats = source.uniform(DType::f64, {1000}, -3, 5);
  auto values = floats.data<double>();
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, -3);
  EXPECT_LT(*least, -2.9);
  EXPECT_LT(*most, 5);
  EXPECT_GT(*most, 4.9);
  std::vector<std::int32_t> whole =
      source.uniform(DType::i32, {1000}, -2, 3).to_vector<std::int32_t>();
  EXPECT_EQ(std::set<std::int32_t>(whole.begin(), whole.end()),
            (std::set<std::int32_t>{-2, -1, 0, 1, 2, 3}));
  std::vector<std::uint8_t> small =
      source.uniform(DType::u8, {1000}, -2, 3).to_vector<std::uint8_t>();
  EXPECT_EQ(std::set<std::uint8_t>(small.begin(), small.end()),
            (std::set<std::uint8_t>{0, 1, 2, 3}));
  std::vector<bool> bools = source.uniform(DType::bool_, {100}).to_vector<bool>();
  EXPECT_EQ(std::set<bool>(bools.begin(), bools.end()), (std::set<bool>{false, true}));
}

TEST(SampleSource, DistinctKeepsItsGap) {
  SampleSource source(2);
  for (std::int64_t count : {1, 2, 7, 32}) {
    std::vector<double> values = source.distinct(DType::f64, {count}, 0.25).to_vector<double>();
    for (double value : values) EXPECT_GE(std::abs(value), 0.125) << count;
    std::sort(values.begin(), values.end());
    for (std::size_t i = 1; i < values.size(); ++i) EXPECT_GE(values[i] - values[i - 1], 0.25);
  }
  std::vector<std::int32_t> whole = source.distinct(DType::i32, {16}).to_vector<std::int32_t>();
  EXPECT_EQ(std::set<std::int32_t>(whole.begin(), whole.end()).size(), 16u);
  EXPECT_FALSE(std::is_sorted(whole.begin(), whole.end()));
  std::vector<std::uint8_t> bytes = source.distinct(DType::u8, {16}).to_vector<std::uint8_t>();
  EXPECT_EQ(std::set<std::uint8_t>(bytes.begin(), bytes.end()).size(), 16u);
}

}  // namespace
}  // namespace meshard
