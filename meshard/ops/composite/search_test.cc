#include "meshard/ops/composite/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Argmax, Types) {
  EXPECT_EQ(argmax(input({4, 8})).type(), (TensorType{DType::i32, {}}));
  EXPECT_EQ(argmin(input({4, 8}), 0).type(), (TensorType{DType::i32, {8}}));
  EXPECT_EQ(argmax(input({4, 8}), -1, true).shape(), (Shape{4, 1}));
  EXPECT_EQ(argmax(input({4, 8}), std::nullopt, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(argmax(input({4}, DType::bool_), 0).dtype(), DType::i32);
}

TEST(Argmax, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        argmax(input({4, 0}), 1);
      },
      ErrorCode::kInvalidArgument, {"search_test.cc:", "[argmax]", "f32[4,0]"}));
  EXPECT_TRUE(
      throws_error([] { argmin(input({4}), 1); }, ErrorCode::kOutOfRange, {"[argmin]", "1"}));
}

// meshard-conformance tests the values with numerics.json.

TEST(Order, Types) {
  EXPECT_EQ(argsort(input({4, 8}), 0).type(), (TensorType{DType::i32, {4, 8}}));
  auto [values, indices] = top_k(input({4, 8}, DType::bf16), 3);
  EXPECT_EQ(values.type(), (TensorType{DType::bf16, {4, 3}}));
  EXPECT_EQ(indices.type(), (TensorType{DType::i32, {4, 3}}));
}

TEST(Order, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        top_k(input({4, 8}), 5, 0);
      },
      ErrorCode::kInvalidArgument, {"search_test.cc:", "k = 5", "0..4", "dimension 0"}));
  EXPECT_TRUE(throws_error([] { argsort(input({})); }, ErrorCode::kOutOfRange, {"[argsort]"}));
}

HostArray indices_of(std::vector<std::int32_t> values) {
  return HostArray::from_vector(std::move(values));
}

TEST(CountNonzero, Counts) {
  Tensor x = from_host<float>({0, 1, -2, 0, NAN, 3}, {2, 3});
  EXPECT_EQ(interpret(count_nonzero(x)).item<std::int32_t>(), 4);
  EXPECT_EQ(interpret(count_nonzero(x, 1)), indices_of({2, 2}));
  EXPECT_EQ(count_nonzero(x, 0, true).type(), (TensorType{DType::i32, {1, 3}}));
  EXPECT_EQ(count_nonzero(input({4}, DType::bool_)).dtype(), DType::i32);
}

TEST(Searchsorted, AsTheStandardLibrary) {
  for (std::size_t size : {1, 2, 3, 4, 5, 7, 8, 9, 31}) {
    std::vector<double> sorted, wanted;
    for (std::size_t i = 0; i < size; ++i) sorted.push_back(static_cast<double>(i / 3));
    for (double x = -1; x < 12; x += 0.5) wanted.push_back(x);
    std::vector<std::int32_t> left, right;
    for (double x : wanted) {
      left.push_back(static_cast<std::int32_t>(std::lower_bound(sorted.begin(), sorted.end(), x) -
                                               sorted.begin()));
      right.push_back(static_cast<std::int32_t>(std::upper_bound(sorted.begin(), sorted.end(), x) -
                                                sorted.begin()));
    }
    Tensor row = from_host(sorted, {static_cast<std::int64_t>(size)});
    Tensor x = from_host(wanted, {static_cast<std::int64_t>(wanted.size())});
    EXPECT_EQ(interpret(searchsorted(row, x)), indices_of(left)) << size;
    EXPECT_EQ(interpret(searchsorted(row, x, SearchSide::kRight)), indices_of(right)) << size;
  }
}

TEST(Searchsorted, NaNBelongsBehindNumbers) {
  Tensor row = from_host<double>({1, 2, NAN, NAN}, {4}), x = from_host<double>({NAN, 5}, {2});
  EXPECT_EQ(interpret(searchsorted(row, x)), indices_of({2, 2}));
  EXPECT_EQ(interpret(searchsorted(row, x, SearchSide::kRight)), indices_of({4, 2}));
}

TEST(Searchsorted, WithASorterAndWithoutElements) {
  Tensor row = from_host<std::int32_t>({30, 10, 20}, {3});
  Tensor sorter = from_host<std::int32_t>({1, 2, 0}, {3});
  EXPECT_EQ(interpret(searchsorted(row, from_host<std::int32_t>({15, 40}, {2}), SearchSide::kLeft,
                                   sorter)),
            indices_of({1, 3}));
  EXPECT_EQ(interpret(searchsorted(input({0}), from_host<float>({1}, {1}))), indices_of({0}));
  EXPECT_EQ(searchsorted(input({4}), input({2, 3})).shape(), (Shape{2, 3}));
  EXPECT_TRUE(throws_error(
      [] {
        searchsorted(input({4, 2}), input({2}));
      },
      ErrorCode::kInvalidArgument, {"search_test.cc:", "f32[4,2]"}));
  EXPECT_TRUE(throws_error(
      [] { searchsorted(input({4}), input({2}), SearchSide::kLeft, input({3}, DType::i32)); },
      ErrorCode::kInvalidArgument, {"i32[3]", "f32[4]"}));
}

TEST(Isin, ComparesEveryPair) {
  Tensor x = from_host<std::int32_t>({1, 2, 3, 4}, {2, 2});
  Tensor list = from_host<std::int32_t>({4, 2, 9}, {3});
  HostArray found = interpret(isin(x, list));
  EXPECT_EQ(found.shape(), (Shape{2, 2}));
  EXPECT_EQ(found.astype(DType::i32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(interpret(isin(x, list, true)).astype(DType::i32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 0, 1, 0}));
}

TEST(Unique, Types) {
  Unique all = unique_all(input({2, 3}), 4);
  EXPECT_EQ(all.values.type(), (TensorType{DType::f32, {4}}));
  EXPECT_EQ(all.indices.type(), (TensorType{DType::i32, {4}}));
  EXPECT_EQ(all.inverse_indices.type(), (TensorType{DType::i32, {2, 3}}));
  EXPECT_EQ(all.counts.type(), (TensorType{DType::i32, {4}}));
  EXPECT_EQ(all.number.type(), (TensorType{DType::i32, {}}));
  EXPECT_EQ(unique_values(input({2}), 0).shape(), Shape{0});
}

TEST(Unique, Errors) {
  EXPECT_TRUE(throws_error([] { unique_values(input({2}), -1); }, ErrorCode::kInvalidArgument,
                           {"search_test.cc:", "size = -1"}));
  EXPECT_TRUE(
      throws_error([] { unique_counts(input({0}), 1); }, ErrorCode::kInvalidArgument, {"f32[0]"}));
}

}  // namespace
}  // namespace meshard
