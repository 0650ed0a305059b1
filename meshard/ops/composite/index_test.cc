#include "meshard/ops/composite/index.h"

#include <gtest/gtest.h>

#include "meshard/ops/composite/operators.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor grid() {
  return from_host<std::int32_t>({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {3, 4});
}
HostArray ints(std::vector<std::int32_t> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

// As in NumPy.
TEST(Index, AsInNumPy) {
  Tensor x = grid();
  EXPECT_EQ(interpret(index(x, {1})), ints({10, 11, 12, 13}, {4}));
  EXPECT_EQ(interpret(index(x, {-1, -2})), ints({22}, {}));
  EXPECT_EQ(interpret(index(x, {whole, range(1, 3)})), ints({1, 2, 11, 12, 21, 22}, {3, 2}));
  EXPECT_EQ(interpret(index(x, {range(0, none, 2), 0})), ints({0, 20}, {2}));
  EXPECT_EQ(interpret(index(x, {ellipsis, range(-2, none)})), ints({2, 3, 12, 13, 22, 23}, {3, 2}));
  EXPECT_EQ(interpret(index(x, {newaxis, 0, newaxis})), ints({0, 1, 2, 3}, {1, 1, 4}));
  EXPECT_EQ(interpret(index(x, {range(none, -1), 3})), ints({3, 13}, {2}));
  EXPECT_EQ(index(x, {range(2, 1)}).shape(), (Shape{0, 4}));
  EXPECT_EQ(index(x, {range(-100, 100)}).value(), x.value());
  EXPECT_EQ(index(x, {}).value(), x.value());
}

// As in NumPy.
TEST(Index, BackwardAsInNumPy) {
  Tensor x = grid();
  EXPECT_EQ(interpret(index(x, {0, range(none, none, -1)})), ints({3, 2, 1, 0}, {4}));
  EXPECT_EQ(interpret(index(x, {0, range(none, none, -2)})), ints({3, 1}, {2}));
  EXPECT_EQ(interpret(index(x, {0, range(2, 0, -1)})), ints({2, 1}, {2}));
  EXPECT_EQ(interpret(index(x, {0, range(-2, none, -3)})), ints({2}, {1}));
  EXPECT_EQ(interpret(index(x, {0, range(9, -9, -3)})), ints({3, 0}, {2}));
  EXPECT_EQ(interpret(index(x, {range(none, none, -2), range(3, 1, -1)})),
            ints({23, 22, 3, 2}, {2, 2}));
  EXPECT_EQ(index(x, {range(0, 2, -1)}).shape(), (Shape{0, 4}));
  EXPECT_EQ(index(x, {range(-9, none, -1)}).shape(), (Shape{0, 4}));
}

// Every range of a small dimension takes the elements at start, start + stride, ... before stop.
TEST(Index, EveryRange) {
  std::vector<std::int32_t> values{0, 1, 2, 3};
  Tensor x = from_host<std::int32_t>({0, 1, 2, 3}, {4});
  for (std::int64_t stride : {-5, -3, -2, -1, 1, 2, 3, 5})
    for (std::int64_t start = 0; start < 4; ++start)
      for (std::int64_t stop = 0; stop < 4; ++stop) {
        std::vector<std::int32_t> taken;
        for (std::int64_t i = start; stride > 0 ? i < stop : i > stop; i += stride)
          taken.push_back(values[static_cast<std::size_t>(i)]);
        Shape shape{std::ssize(taken)};
        if (taken.empty())
          EXPECT_EQ(index(x, {range(start, stop, stride)}).shape(), shape);
        else
          EXPECT_EQ(interpret(index(x, {range(start, stop, stride)})), ints(taken, shape))
              << start << ":" << stop << ":" << stride;
      }
}

// As in NumPy: x[1], x[-1][2], x[0:2, -1], x[..., None, 1:], x[::-1], x[()].
TEST(Index, Brackets) {
  Tensor x = grid();
  EXPECT_EQ(interpret(x[1]), ints({10, 11, 12, 13}, {4}));
  EXPECT_EQ(interpret(x[-1][2]), ints({22}, {}));
  EXPECT_EQ(interpret((x + 1)[0][0]), ints({1}, {}));
  EXPECT_EQ(interpret(x[{2, 3}]), ints({23}, {}));
  EXPECT_EQ(interpret(x[{0}]), ints({0, 1, 2, 3}, {4}));
  EXPECT_EQ(interpret(x[range(1, none)]), ints({10, 11, 12, 13, 20, 21, 22, 23}, {2, 4}));
  EXPECT_EQ(interpret(x[{range(0, 2), -1}]), ints({3, 13}, {2}));
  EXPECT_EQ(interpret(x[range(none, none, -2)][{whole, 0}]), ints({20, 0}, {2}));
  EXPECT_EQ((x[{ellipsis, newaxis, range(1, none)}].shape()), (Shape{3, 1, 3}));
  EXPECT_EQ(x[newaxis].shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(x[whole].value(), x.value());
  EXPECT_EQ(x[ellipsis].value(), x.value());
  EXPECT_EQ(x[{}].value(), x.value());
  // Integers of every type; an element of unsigned 64 bits counts from the beginning.
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(interpret(x[i]), interpret(index(x, {i})));
  EXPECT_EQ(interpret(x[std::uint8_t{2}][short{1}]), ints({21}, {}));
}

template <class T>
concept IndexedBy = requires(const Tensor& x, const T& item) {
  x[item];
};

// A fraction, a truth value and a name are not indices.
TEST(Index, OnlyIntegersAreNumbers) {
  static_assert(IndexedBy<int> && IndexedBy<std::uint64_t> && IndexedBy<Range>);
  static_assert(!std::is_constructible_v<IndexItem, double>);
  static_assert(!std::is_constructible_v<RangeBound, double>);
  static_assert(!IndexedBy<double> && !IndexedBy<bool> && !IndexedBy<const char*>);
}

// x[0] is a value of its own: assigning to it would change nothing.
TEST(Index, APartCannotBeAssigned) {
  using Part = decltype(std::declval<const Tensor&>()[0]);
  static_assert(!std::is_assignable_v<Part, Tensor>);
}

TEST(Index, BracketErrorsNameTheCallersLine) {
  Tensor x = grid();
  EXPECT_TRUE(throws_error([&] { x[-4]; }, ErrorCode::kOutOfRange,
                           {"index_test.cc:", "-4 is outside dimension 0 = 3 of i32[3,4]"}));
  EXPECT_TRUE(throws_error([&] { x[0][4]; }, ErrorCode::kOutOfRange,
                           {"index_test.cc:", "4 is outside dimension 0 = 4 of i32[4]"}));
  EXPECT_TRUE(throws_error([&] { x[0][0][0]; }, ErrorCode::kInvalidArgument,
                           {"index_test.cc:", "1 dimensions", "i32[] has 0"}));
  EXPECT_TRUE(throws_error(
      [&] {
        x[{ellipsis, ellipsis}];
      },
      ErrorCode::kInvalidArgument, {"index_test.cc:", "2 ellipses"}));
  EXPECT_TRUE(throws_error([] { Tensor()[0]; }, ErrorCode::kInvalidArgument, {"index_test.cc:"}));
}

TEST(Index, RangesPrintAsInPython) {
  EXPECT_EQ(range(1, 4).to_string(), "1:4");
  EXPECT_EQ(range(none, -1).to_string(), ":-1");
  EXPECT_EQ(range(0, none, 2).to_string(), "0::2");
  EXPECT_EQ(range(none, none, -1).to_string(), "::-1");
}

TEST(Index, Errors) {
  EXPECT_TRUE(throws_error([] { index(grid(), {3}); }, ErrorCode::kOutOfRange,
                           {"index_test.cc:", "3 is outside dimension 0 = 3 of i32[3,4]"}));
  EXPECT_TRUE(throws_error(
      [] {
        index(grid(), {0, 0, 0});
      },
      ErrorCode::kInvalidArgument, {"3 dimensions", "i32[3,4] has 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        index(grid(), {ellipsis, ellipsis});
      },
      ErrorCode::kInvalidArgument, {"2 ellipses"}));
  EXPECT_TRUE(throws_error([] { index(grid(), {range(0, 2, 0)}); }, ErrorCode::kInvalidArgument,
                           {"stride of dimension 0 is 0"}));
}

}  // namespace
}  // namespace meshard
