#include "meshard/ops/cumulative.h"

#include <gtest/gtest.h>

#include <string>

#include "meshard/ops/comparison.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(CumulativeSum, TypesAndErrors) {
  EXPECT_EQ(cumulative_sum(input({4, 8}), 0).type(), (TensorType{DType::f32, {4, 8}}));
  EXPECT_EQ(cumulative_sum(input({8}, DType::bool_)).dtype(), DType::i32) << "bools are counted";
  EXPECT_EQ(cumulative_sum(input({8}, DType::u8)).dtype(), DType::u32);
  EXPECT_EQ(cumulative_sum(input({8}, DType::i16)).dtype(), DType::i32);
  EXPECT_TRUE(throws_error([] { cumulative_sum(input({4}), 1); }, ErrorCode::kOutOfRange,
                           {"cumulative_test.cc:", "1"}));
}

TEST(CumulativeSum, BeginsWithZeroIfTold) {
  auto sums = [](std::int64_t dimension, bool reverse) {
    Tensor x = from_host(HostArray::from_vector<std::int32_t>({1, 2, 3, 4}, {2, 2}));
    return interpret(cumulative_sum(x, dimension, reverse, true)).to_vector<std::int32_t>();
  };
  using Integers = std::vector<std::int32_t>;
  EXPECT_EQ(sums(1, false), (Integers{0, 1, 3, 0, 3, 7}));
  EXPECT_EQ(sums(-2, false), (Integers{0, 0, 1, 2, 4, 6}));
  EXPECT_EQ(sums(-1, true), (Integers{3, 2, 0, 7, 4, 0}));
  EXPECT_EQ(cumulative_sum(input({0}), 0, false, true).type(), (TensorType{DType::f32, {1}}));
  EXPECT_EQ(cumulative_sum(input({3}), 0, false, false).type(), (TensorType{DType::f32, {3}}));
}

// ceil(log2(5)) steps, by 1, 2 and 4.
TEST(CumulativeSum, EmitsDoublingSteps) {
  Tensor y = cumulative_sum(input({2, 5}), 1);
  std::string text = emitted(y);
  auto count = [&](std::string_view part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("stablehlo.pad"), 3) << text;
  EXPECT_EQ(count("stablehlo.slice"), 3) << text;
  EXPECT_EQ(count("stablehlo.add"), 3) << text;
  EXPECT_EQ(count("edge_padding_low = array<i64: 0, 4>, edge_padding_high = array<i64: 0, 0>"), 1)
      << text;
  EXPECT_EQ(emitted(cumulative_sum(input({4, 1}), 1)).find("stablehlo.add"), std::string::npos);
  EXPECT_EQ(rule_of(y), "([i, j])->([i, j]) {i=2, j=5} need_replication={j}");
}

int lines_with(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

TEST(Cumulative, EmitsDoublingSteps) {
  // Steps of 1, 2 and 4 cover all 8.
  EXPECT_EQ(lines_with(emitted(cumulative_prod(input({8}))), "stablehlo.multiply"), 3);
  EXPECT_EQ(lines_with(emitted(cumulative_max(input({8}))), "stablehlo.maximum"), 3);
  EXPECT_EQ(lines_with(emitted(cumulative_min(input({9}))), "stablehlo.minimum"), 4);
  EXPECT_EQ(lines_with(emitted(cumulative_logsumexp(input({2}))), "stablehlo.log_plus_one"), 1);
  EXPECT_EQ(lines_with(emitted(cumulative_prod(input({1}))), "stablehlo.multiply"), 0);
}

TEST(Cumulative, ReversePadsTheOtherEnd) {
  std::string text = emitted(cumulative_prod(input({2}), 0, true));
  EXPECT_NE(text.find("edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 1>"),
            std::string::npos)
      << text;
}

TEST(Cumulative, Dtypes) {
  EXPECT_EQ(cumulative_prod(input({4}, DType::bool_)).dtype(), DType::i32);
  EXPECT_EQ(cumulative_prod(input({4}, DType::i8)).dtype(), DType::i32);
  EXPECT_EQ(cumulative_max(input({4}, DType::u8)).dtype(), DType::u8);
  EXPECT_EQ(cumulative_logsumexp(input({4}, DType::i64)).dtype(), DType::f32);
  EXPECT_TRUE(throws_error([] { cumulative_max(input({4}, DType::bool_)); },
                           ErrorCode::kInvalidArgument,
                           {"cumulative_test.cc:", "[cumulative_max]", "bool[4]"}));
  EXPECT_TRUE(throws_error(
      [] {
        cumulative_min(input({4, 8}), 2);
      },
      ErrorCode::kOutOfRange, {"cumulative_min", "dimension 2"}));
}

// The derivative consists of exponentials of differences to the result, which f16 would round.
TEST(Cumulative, LogsumexpOfNarrowFloatsIsComputedInF32) {
  Tensor result = cumulative_logsumexp(input({4}, DType::f16));
  EXPECT_EQ(result.dtype(), DType::f16);
  Tensor running(result.value().node()->operands()[0]);
  EXPECT_EQ(running.dtype(), DType::f32);
  EXPECT_EQ(running.value().node()->op().name, "cumulative_logsumexp");
}

TEST(Cumulative, ProductsBeginWithOneIfTold) {
  Tensor y = cumulative_prod(input({4, 2}, DType::bool_), 0, false, true);
  EXPECT_EQ(y.type(), (TensorType{DType::i32, {5, 2}}));
  EXPECT_EQ(lines_with(emitted(y), "stablehlo.concatenate"), 1);
  Tensor plain = cumulative_prod(input({4, 2}), 0, false, false);
  EXPECT_EQ(lines_with(emitted(plain), "stablehlo.concatenate"), 0);
}

TEST(Cumulative, Rule) {
  EXPECT_EQ(rule_of(cumulative_prod(input({4, 8}), 1)),
            "([i, j])->([i, j]) {i=4, j=8} need_replication={j}");
}

TEST(Diff, OfNeighbors) {
  Tensor squares = from_host<double>({0, 1, 4, 9, 16}, {5});
  EXPECT_EQ(interpret(diff(squares)), HostArray::from_vector<double>({1, 3, 5, 7}));
  EXPECT_EQ(interpret(diff(squares, 0, 2)), HostArray::from_vector<double>({2, 2, 2}));
  EXPECT_EQ(interpret(diff(squares, 0, 0)), interpret(squares));
  EXPECT_EQ(diff(squares, 0, 7).shape(), Shape{0});
  Tensor end = from_host<double>({-1}, {1});
  EXPECT_EQ(interpret(diff(squares, 0, 1, end, end)),
            HostArray::from_vector<double>({1, 1, 3, 5, 7, -17}));
  Tensor rows = from_host<double>({1, 2, 10, 20}, {2, 2});
  EXPECT_EQ(interpret(diff(rows, 0)), HostArray::from_vector<double>({9, 18}, {1, 2}));
  EXPECT_EQ(interpret(diff(rows)), HostArray::from_vector<double>({1, 10}, {2, 1}));
}

TEST(Diff, OfBoolsIsWhereTheyDiffer) {
  Tensor x = from_host<std::int32_t>({1, 1, 0}, {3});
  HostArray differs = interpret(diff(not_equal(x, 0)));
  EXPECT_EQ(differs.dtype(), DType::bool_);
  EXPECT_EQ(differs.astype(DType::i32), HostArray::from_vector<std::int32_t>({0, 1}));
}

TEST(Diff, Errors) {
  EXPECT_TRUE(throws_error([] { diff(input({4}), 0, -1); }, ErrorCode::kInvalidArgument,
                           {"cumulative_test.cc:", "n = -1"}));
  EXPECT_TRUE(throws_error(
      [] {
        diff(input({4, 2}), 0, 1, input({1, 3}));
      },
      ErrorCode::kInvalidArgument, {"dimension 1 = 3", "dimension 1 = 2"}));
}

}  // namespace
}  // namespace meshard
