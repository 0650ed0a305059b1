#include "meshard/array/host_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using namespace dtypes;  // NOLINT

HostArray counted(Shape shape) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 0);
  return HostArray::from_vector(std::move(values), std::move(shape));
}

TEST(HostArray, TakesAVectorWithoutACopy) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const float* memory = values.data();
  HostArray array = HostArray::from_vector(std::move(values), {2, 3});
  EXPECT_EQ(array.data<float>().data(), memory);
  EXPECT_EQ(array.type().to_string(), "f32[2,3]");
  EXPECT_EQ(array.at<float>({1, 0}), 4);
  EXPECT_EQ(array.at<float>({-1, -1}), 6);
  EXPECT_EQ(array.ownership(), Ownership::kPrivate);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % array.alignment(), 0u);
}

TEST(HostArray, BoolsAreBytes) {
  HostArray array = HostArray::from_vector<bool>({true, false, true});
  EXPECT_EQ(array.size_in_bytes(), 3);
  EXPECT_EQ(static_cast<int>(array.bytes()[0]), 1);
  EXPECT_EQ(static_cast<int>(array.bytes()[1]), 0);
  EXPECT_EQ(array.at<bool>({2}), true);
}

TEST(HostArray, CopiesASpan) {
  std::vector<double> values{1, 2, 3};
  HostArray array = HostArray::copy_of(std::span<const double>(values), {3});
  values[0] = 9;
  EXPECT_EQ(array.to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_GE(array.alignment(), kHostAlignment);
}

TEST(HostArray, SharedMemoryIsNotWritten) {
  HostArray array = HostArray::uninitialized({i32, {2}});
  array.mutable_data<std::int32_t>()[0] = 5;
  array.mutable_data<std::int32_t>()[1] = 6;
  {
    HostArray other = array;
    EXPECT_EQ(array.ownership(), Ownership::kShared);
    EXPECT_EQ(other.ownership(), Ownership::kShared);
    EXPECT_EQ(other.bytes(), array.bytes());
    EXPECT_TRUE(throws_error([&] { array.mutable_bytes(); }, ErrorCode::kFailedPrecondition,
                             {"i32[2]", "shared"}));
  }
  EXPECT_EQ(array.ownership(), Ownership::kPrivate);
  array.mutable_data<std::int32_t>()[0] = 7;
  EXPECT_EQ(array.at<std::int32_t>({0}), 7);
  HostArray moved = std::move(array);
  EXPECT_EQ(moved.ownership(), Ownership::kPrivate);
}

TEST(HostArray, BorrowsAndReleasesOnce) {
  std::vector<float> values{1, 2};
  int released = 0;
  {
    HostArray array = HostArray::borrow({f32, {2}}, values.data(), [&] { ++released; });
    EXPECT_EQ(array.bytes(), reinterpret_cast<std::byte*>(values.data()));
    EXPECT_EQ(array.ownership(), Ownership::kBorrowed);
    EXPECT_TRUE(
        throws_error([&] { array.mutable_bytes(); }, ErrorCode::kFailedPrecondition, {"borrowed"}));
    HostArray other = array.reshaped({1, 2});
    EXPECT_EQ(other.ownership(), Ownership::kBorrowed);
    array = HostArray();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(HostArray, HandlesMayBeDroppedOnSeveralThreads) {
  int released = 0;
  std::vector<float> values(16, 1.0f);
  {
    HostArray array = HostArray::borrow({f32, {16}}, values.data(), [&] { ++released; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([array] {
        for (int i = 0; i < 1000; ++i) HostArray copy = array;
      });
    array = HostArray();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(released, 1);
}

TEST(HostArray, LargeBlocksAreAlignedAndZero) {
  TensorType type{f32, {3, 1 << 20}};
  ASSERT_GE(type.bytes(), static_cast<std::int64_t>(kHugeBlockBytes));
  HostArray array = HostArray::zeros(type);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.bytes()) % (2 << 20), 0u);
  for (float value : array.data<float>()) ASSERT_EQ(value, 0.0f);
  array.mutable_data<float>().back() = 1;
  EXPECT_EQ(array.at<float>({2, -1}), 1.0f);
  for (std::int64_t n : {0, 1, 63, 64, 65, 4096})
    EXPECT_GE(HostArray::uninitialized({u8, {n}}).alignment(), kHostAlignment);
}

TEST(HostArray, Fills) {
  EXPECT_EQ(HostArray::full<float>({2}, 0.5f).to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(HostArray::full({bf16, {1}}, 1.5).data<BFloat16>()[0].bits(), 0x3FC0);
  EXPECT_EQ(HostArray::zeros({f8e8m0fnu, {1}}).data<Float8E8M0FNU>()[0].bits(), 0xFF);
  EXPECT_EQ(HostArray::scalar(3).item<double>(), 3.0);
  EXPECT_EQ(HostArray::scalar(true).dtype(), bool_);
}

TEST(HostArray, ItemNarrowsOnlyWhatFits) {
  auto refused = [](auto read, std::string value) {
    EXPECT_TRUE(throws_error([&] { (void)read(); }, ErrorCode::kOutOfRange,
                             {value, "host_array_test.cc:"}));
  };
  refused([] { return HostArray::scalar(300).item<std::uint8_t>(); }, "300");
  refused([] { return HostArray::scalar(-1).item<std::uint32_t>(); }, "-1");
  refused([] { return HostArray::scalar(-1).item<std::uint64_t>(); }, "-1");
  refused([] { return HostArray::scalar(2.7f).item<std::int32_t>(); }, "2.7");
  refused([] { return HostArray::scalar(std::nan("")).item<std::int32_t>(); }, "nan");
  refused([] { return HostArray::scalar(0x1p63).item<std::int64_t>(); }, "i64");
  refused([] { return HostArray::scalar(~std::uint64_t{0}).item<std::int64_t>(); },
          "18446744073709551615");
  refused([] { return HostArray::scalar(1e300).item<float>(); }, "1e+300");
  refused([] { return HostArray::scalar(Complex64(1, 2)).item<float>(); }, "2");
  EXPECT_EQ(HostArray::scalar(255).item<std::uint8_t>(), 255);
  EXPECT_EQ(HostArray::scalar(-3.0).item<std::int8_t>(), -3);
  EXPECT_EQ(HostArray::scalar(0.1).item<float>(), 0.1f);
  EXPECT_EQ(HostArray::scalar(Complex64(4, 0)).item<double>(), 4);
  EXPECT_EQ(HostArray::scalar(-0x1p63).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(std::isinf(HostArray::scalar(HUGE_VAL).item<float>()));
  EXPECT_TRUE(HostArray::scalar(2).item<bool>());
}

TEST(HostArray, RefusesWrongQuestions) {
  HostArray array = counted({2, 3});
  EXPECT_TRUE(throws_error([&] { (void)array.data<float>(); }, ErrorCode::kInvalidArgument,
                           {"f32", "i32[2,3]", "host_array_test.cc"}));
  EXPECT_TRUE(throws_error([&] { (void)array.at<int>({0}); }, ErrorCode::kInvalidArgument,
                           {"1 indices", "2 dimensions"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)array.at<int>({0, 3});
      },
      ErrorCode::kOutOfRange, {"index 3 of dimension 1", "i32[2,3]"}));
  EXPECT_TRUE(throws_error([&] { (void)array.item<int>(); }, ErrorCode::kInvalidArgument,
                           {"exactly one", "i32[2,3]"}));
  EXPECT_TRUE(throws_error([&] { (void)array.reshaped({4}); }, ErrorCode::kInvalidArgument,
                           {"i32[2,3]", "(6 elements)", "[4]"}));
  EXPECT_TRUE(throws_error(
      [] {
        HostArray::from_vector<float>({1, 2}, {3});
      },
      ErrorCode::kInvalidArgument, {"2 values", "[3]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)array.slice({{0, 2}, {2, 4}});
      },
      ErrorCode::kOutOfRange, {"2:4", "dimension 1"}));
}

TEST(HostArray, SlicesABox) {
  HostArray array = counted({3, 4});
  HostArray box = array.slice({{1, 3}, {1, 3}});
  EXPECT_EQ(box.to_vector<std::int32_t>(), (std::vector<std::int32_t>{5, 6, 9, 10}));
  EXPECT_EQ(box.shape(), (Shape{2, 2}));
  EXPECT_EQ(array.slice({{1, 1}, {0, 4}}).size(), 0);
}

TEST(HostArray, ComparesValues) {
  HostArray a = HostArray::from_vector<float>({0.0f, 1.0f});
  HostArray b = HostArray::from_vector<float>({-0.0f, 1.0f});
  HostArray n = HostArray::from_vector<float>({NAN, 1.0f});
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a.same_bits(b));
  EXPECT_FALSE(n == n);
  EXPECT_TRUE(n.same_bits(n));
  EXPECT_FALSE(a == a.reshaped({2, 1}));
  EXPECT_FALSE(a == a.astype(f64));
}

// Expected values from XLA's convert: floats to integers clamp, NaN becomes 0, integers wrap.
TEST(HostArray, ConvertsAsDocumented) {
  HostArray floats =
      HostArray::from_vector<float>({-1.5f, 2.9f, 300.0f, 1e30f, -INFINITY, NAN, 0.0f, -0.2f});
  EXPECT_EQ(floats.astype(i8).to_vector<std::int8_t>(),
            (std::vector<std::int8_t>{-1, 2, 127, 127, -128, 0, 0, 0}));
  EXPECT_EQ(floats.astype(u8).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{0, 2, 255, 255, 0, 0, 0, 0}));
  EXPECT_EQ(floats.astype(i64).at<std::int64_t>({3}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(floats.astype(u64).at<std::uint64_t>({3}), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(floats.astype(i64).at<std::int64_t>({4}), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(floats.astype(bool_).to_vector<bool>(), (std::vector<bool>{1, 1, 1, 1, 1, 1, 0, 1}));
  EXPECT_EQ(HostArray::from_vector<std::int32_t>({300, -1}).astype(u8).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{44, 255}));
  EXPECT_EQ(HostArray::from_vector<bool>({true, false}).astype(bf16).data<BFloat16>()[0].bits(),
            0x3F80);
  EXPECT_EQ(HostArray::scalar(BFloat16(2.5)).astype(f16).data<Half>()[0].bits(), 0x4100);
  EXPECT_EQ(floats.astype(f32).bytes(), floats.bytes());
}

// 2^60 + 2^52 is a tie in bfloat16; one more must round up, although a double cannot represent it.
TEST(HostArray, WideIntegersRoundOnce) {
  std::int64_t tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 52);
  HostArray array =
      HostArray::from_vector<std::int64_t>({tie, tie + 1, -tie, -tie - 1}).astype(bf16);
  EXPECT_EQ(array.data<BFloat16>()[0].bits(), 0x5D80);
  EXPECT_EQ(array.data<BFloat16>()[1].bits(), 0x5D81);
  EXPECT_EQ(array.data<BFloat16>()[2].bits(), 0xDD80);
  EXPECT_EQ(array.data<BFloat16>()[3].bits(), 0xDD81);
}

// Small integers survive every pair of conversions between dtypes that can represent them.
TEST(HostArray, ConvertsEveryPair) {
  for (int from = 0; from < kDTypeCount; ++from)
    for (int to = 0; to < kDTypeCount; ++to) {
      auto scale_type = static_cast<int>(DType::f8e8m0fnu);
      bool scale = from == scale_type || to == scale_type;  // f8e8m0fnu has no zero
      HostArray start = HostArray::from_vector<std::int32_t>({1, scale ? 1 : 0, 1});
      HostArray there = start.astype(static_cast<DType>(from)).astype(static_cast<DType>(to));
      EXPECT_EQ(there.dtype(), static_cast<DType>(to));
      EXPECT_EQ(there.astype(i32), start) << from << " " << to;
    }
}

TEST(HostArray, Prints) {
  EXPECT_EQ(counted({2, 2}).to_string(), "[[0, 1], [2, 3]] i32[2,2]");
  EXPECT_EQ(HostArray::scalar(1.5f).to_string(), "1.5 f32[]");
  EXPECT_EQ(HostArray::from_vector<bool>({true, false}).to_string(), "[true, false] bool[2]");
  EXPECT_EQ(HostArray::from_vector<float>({NAN, -INFINITY, 0.1f}).to_string(),
            "[nan, -inf, 0.1] f32[3]");
  EXPECT_EQ(HostArray::zeros({u8, {2, 0}}).to_string(), "[[], []] u8[2,0]");
  EXPECT_EQ(HostArray().to_string(), "[] f32[0]");
  EXPECT_EQ(counted({2000}).to_string(), "[0, 1, 2, ..., 1997, 1998, 1999] i32[2000]");
  EXPECT_EQ(
      counted({2, 1000}).to_string(),
      "[[0, 1, 2, ..., 997, 998, 999], [1000, 1001, 1002, ..., 1997, 1998, 1999]] i32[2,1000]");
}

}  // namespace
}  // namespace meshard
