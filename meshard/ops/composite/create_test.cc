#include "meshard/ops/composite/create.h"

#include <gtest/gtest.h>

#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

HostArray f32(std::vector<float> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

TEST(Create, Fills) {
  EXPECT_EQ(interpret(zeros({2, 2})), f32({0, 0, 0, 0}, {2, 2}));
  EXPECT_EQ(interpret(ones({2}, DType::i32)), HostArray::from_vector<std::int32_t>({1, 1}));
  EXPECT_EQ(interpret(full({2}, 7)), HostArray::from_vector<std::int32_t>({7, 7}));
  EXPECT_EQ(interpret(full({}, true)), HostArray::scalar(true));
  EXPECT_EQ(interpret(full({2}, 2.5, DType::f64)), HostArray::from_vector<double>({2.5, 2.5}));
  Tensor like = from_host<std::uint8_t>({1, 2, 3}, {3});
  EXPECT_EQ(interpret(zeros_like(like)), HostArray::from_vector<std::uint8_t>({0, 0, 0}));
  EXPECT_EQ(interpret(ones_like(like, DType::f32)), f32({1, 1, 1}, {3}));
  EXPECT_EQ(interpret(full_like(like, 9)), HostArray::from_vector<std::uint8_t>({9, 9, 9}));
  EXPECT_TRUE(
      throws_error([] { full({2}, constant(HostArray::scalar(Complex64(1, 2))), DType::f32); },
                   ErrorCode::kInvalidArgument, {"[full]", "c64[]", "f32 cannot hold"}));
  EXPECT_TRUE(
      throws_error([] { full_like(zeros({2}), constant(HostArray::scalar(Complex64(1, 2)))); },
                   ErrorCode::kInvalidArgument, {"[full]", "c64[]", "f32 cannot hold"}));
  EXPECT_TRUE(throws_error([&] { full({2}, like); }, ErrorCode::kInvalidArgument,
                           {"[full]", "rank 0, not u8[3]"}));
}

TEST(Create, FilledTensorsHoldNoData) {
  Tensor x = zeros({1000, 1000});
  EXPECT_EQ(Graph::build({}, std::vector{x.value()}, 0).captured().size(), 0u);
}

TEST(Create, Arange) {
  using I = std::int32_t;
  EXPECT_EQ(interpret(arange(4)), HostArray::from_vector<I>({0, 1, 2, 3}));
  EXPECT_EQ(interpret(arange(2, 8, 3)), HostArray::from_vector<I>({2, 5}));
  EXPECT_EQ(interpret(arange(5, 0, -2)), HostArray::from_vector<I>({5, 3, 1}));
  EXPECT_EQ(interpret(arange(0.0, 1.0, 0.25)), f32({0, 0.25f, 0.5f, 0.75f}, {4}));
  EXPECT_EQ(interpret(arange(0, 2, 0.5, DType::i32)), HostArray::from_vector<I>({0, 0, 1, 1}));
  EXPECT_EQ(interpret(arange(5, 0, -2, DType::u8)),
            HostArray::from_vector<std::uint8_t>({5, 3, 1}));
  EXPECT_EQ(interpret(arange(0, 3, 300, DType::u8)), HostArray::from_vector<std::uint8_t>({0}));
  // 303 and 909 are rounded once, to even: bf16 has 8 bits.
  EXPECT_EQ(interpret(slice(arange(0, 912, 3, DType::bf16), {101}, {102})).to_string(),
            "[304] bf16[1]");
  EXPECT_EQ(interpret(slice(arange(0, 912, 3, DType::bf16), {303}, {304})).to_string(),
            "[908] bf16[1]");
  EXPECT_EQ(interpret(arange(16777217, 16777220, 2, DType::f32)), f32({16777216, 16777220}, {2}));
  std::int64_t large = std::int64_t{1} << 53;
  EXPECT_EQ(interpret(arange(large + 1, large + 3, 1, DType::i64)),
            HostArray::from_vector<std::int64_t>({large + 1, large + 2}));
  EXPECT_TRUE(throws_error([] { arange(4999999999, 5000000001); }, ErrorCode::kInvalidArgument,
                           {"create_test.cc:", "i32 cannot hold 4999999999"}));
  EXPECT_TRUE(throws_error([] { arange(250, 260, 1, DType::u8); }, ErrorCode::kInvalidArgument,
                           {"u8 cannot hold 259"}));
  EXPECT_EQ(arange(3, 3).shape(), (Shape{0}));
  EXPECT_EQ(arange(3, 1).shape(), (Shape{0}));
  EXPECT_TRUE(throws_error([] { arange(0, 3, 0); }, ErrorCode::kInvalidArgument,
                           {"[arange] step cannot be 0"}));
  EXPECT_TRUE(throws_error([] { arange(full({}, 3)); }, ErrorCode::kInvalidArgument,
                           {"create_test.cc", "[arange] stop is a tensor"}));
}

TEST(Create, Linspace) {
  EXPECT_EQ(interpret(linspace(1, 2, 5)), f32({1, 1.25f, 1.5f, 1.75f, 2}, {5}));
  EXPECT_EQ(interpret(linspace(0, 1, 4, DType::f32, false)), f32({0, 0.25f, 0.5f, 0.75f}, {4}));
  EXPECT_EQ(interpret(linspace(3, 9, 1)), f32({3}, {1}));
  // The last value is exactly the stop, whatever the rounding before it.
  for (std::int64_t count : {2, 3, 7, 10, 11, 50})
    EXPECT_EQ(interpret(linspace(0.1, 0.7, count)).to_vector<float>().back(), 0.7f) << count;
  EXPECT_TRUE(throws_error([] { linspace(0, 1, -1); }, ErrorCode::kInvalidArgument,
                           {"[linspace] num = -1"}));
}

TEST(Create, Diagonals) {
  EXPECT_EQ(interpret(eye(2)), f32({1, 0, 0, 1}, {2, 2}));
  EXPECT_EQ(interpret(eye(2, 3, 1)), f32({0, 1, 0, 0, 0, 1}, {2, 3}));
  EXPECT_EQ(interpret(eye(3, 2, -1)), f32({0, 0, 1, 0, 0, 1}, {3, 2}));
  EXPECT_EQ(interpret(tri(2, 3)), f32({1, 0, 0, 1, 1, 0}, {2, 3}));
  EXPECT_EQ(interpret(tri(2, 3, 1)), f32({1, 1, 0, 1, 1, 1}, {2, 3}));
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  EXPECT_EQ(interpret(tril(x)), f32({1, 0, 3, 4, 5, 0, 7, 8}, {2, 2, 2}));
  EXPECT_EQ(interpret(triu(x)), f32({1, 2, 0, 4, 5, 6, 0, 8}, {2, 2, 2}));
  EXPECT_EQ(interpret(triu(x, 1)), f32({0, 2, 0, 0, 0, 6, 0, 0}, {2, 2, 2}));
  EXPECT_TRUE(throws_error([] { tril(from_host<float>({1}, {1})); }, ErrorCode::kInvalidArgument,
                           {"[tril] takes matrices, not f32[1]"}));
  EXPECT_TRUE(throws_error([] { eye(-1); }, ErrorCode::kInvalidArgument, {"[eye] rows = -1"}));
}

TEST(Create, NumbersThatTheDtypeCannotHoldAreRefused) {
  EXPECT_TRUE(throws_error([] { full({1}, 5000000000); }, ErrorCode::kInvalidArgument,
                           {"create_test.cc:", "i32 cannot hold 5000000000"}));
  EXPECT_TRUE(throws_error([] { full({1}, 300, DType::u8); }, ErrorCode::kInvalidArgument,
                           {"u8 cannot hold 300"}));
  EXPECT_TRUE(throws_error([] { full({1}, 1e300); }, ErrorCode::kInvalidArgument,
                           {"f32 cannot hold 1e+300"}));
  EXPECT_TRUE(throws_error([] { linspace(0, 1e300, 5); }, ErrorCode::kInvalidArgument,
                           {"create_test.cc:", "f32 cannot hold 1e+300"}));
  EXPECT_EQ(interpret(full({1}, 5000000000, DType::i64)),
            HostArray::from_vector<std::int64_t>({5000000000}));
  EXPECT_EQ(interpret(full({1}, 1e300, DType::f64)), HostArray::from_vector<double>({1e300}));
}

}  // namespace
}  // namespace meshard
