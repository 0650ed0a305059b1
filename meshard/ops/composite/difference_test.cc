#include "meshard/ops/composite/difference.h"

#include <gtest/gtest.h>

#include "meshard/ops/comparison.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
                           {"difference_test.cc:", "n = -1"}));
  EXPECT_TRUE(throws_error(
      [] {
        diff(input({4, 2}), 0, 1, input({1, 3}));
      },
      ErrorCode::kInvalidArgument, {"dimension 1 = 3", "dimension 1 = 2"}));
}

}  // namespace
}  // namespace meshard
