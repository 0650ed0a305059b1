#include "meshard/ops/composite/operators.h"

#include <gtest/gtest.h>

#include <concepts>

#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

// Outside namespace meshard, without a using-directive: operators are found by their operands.
namespace {

using meshard::HostArray;
using meshard::Tensor;

Tensor floats() { return meshard::from_host<float>({1, 2, -3}, {3}); }
Tensor integers() { return meshard::from_host<std::int32_t>({7, -7, 6}, {3}); }
HostArray f32(std::vector<float> values) { return HostArray::from_vector(std::move(values)); }
HostArray i32(std::vector<std::int32_t> values) {
  return HostArray::from_vector(std::move(values));
}
HostArray bools(std::vector<bool> values) { return HostArray::from_vector(std::move(values)); }

TEST(Operators, Arithmetic) {
  Tensor x = floats(), n = integers();
  EXPECT_EQ(interpret(x + x), f32({2, 4, -6}));
  EXPECT_EQ(interpret(1 + x), f32({2, 3, -2}));
  EXPECT_EQ(interpret(x - 1), f32({0, 1, -4}));
  EXPECT_EQ(interpret(1 - x), f32({0, -1, 4}));
  EXPECT_EQ(interpret(2.5 * x), f32({2.5f, 5, -7.5f}));
  EXPECT_EQ(interpret(x / 2), f32({0.5f, 1, -1.5f}));
  EXPECT_EQ(interpret(n / 2), f32({3.5f, -3.5f, 3}));
  EXPECT_EQ(interpret(n % 4), i32({3, 1, 2}));
  EXPECT_EQ(interpret(n % -4), i32({-1, -3, -2}));
  EXPECT_EQ(interpret(-x), f32({-1, -2, 3}));
}

TEST(Operators, Comparisons) {
  Tensor x = floats();
  EXPECT_EQ(interpret(x < 2), bools({true, false, true}));
  EXPECT_EQ(interpret(x <= 2), bools({true, true, true}));
  EXPECT_EQ(interpret(x > 1), bools({false, true, false}));
  EXPECT_EQ(interpret(1 >= x), bools({true, false, true}));
}

TEST(Operators, Bits) {
  Tensor n = integers();
  EXPECT_EQ(interpret(n & 3), i32({3, 1, 2}));
  EXPECT_EQ(interpret(n | 8), i32({15, -7, 14}));
  EXPECT_EQ(interpret(n ^ n), i32({0, 0, 0}));
  EXPECT_EQ(interpret(~n), i32({-8, 6, -7}));
  EXPECT_EQ(interpret((n > 0) & ~(n > 6)), bools({false, false, true}));
}

TEST(Operators, InPlaceKeepsTheMark) {
  meshard::Mesh mesh({{"x", 3}});
  Tensor x = meshard::mark_sharding(floats() + 1, mesh, meshard::P("x"));
  Tensor row = x;
  x *= 2.5;
  x -= floats();
  EXPECT_EQ(x.sharding(), row.sharding());
  EXPECT_EQ(interpret(x), f32({4, 5.5f, -2}));
  Tensor number =
      meshard::mark_sharding(meshard::from_host<float>({1}, {}) + 1, mesh, meshard::P());
  number += floats();  // another shape: the mark does not apply
  EXPECT_FALSE(number.sharding());
}

TEST(Operators, InPlaceRebindsTheHandleOnly) {
  Tensor x = floats(), copy = x;
  x += 1;
  EXPECT_EQ(interpret(x), f32({2, 3, -2}));
  EXPECT_EQ(interpret(copy), f32({1, 2, -3}));
  x *= x;
  EXPECT_EQ(interpret(x), f32({4, 9, 4}));
  x -= copy;
  EXPECT_EQ(interpret(x), f32({3, 7, 7}));
  x /= 2;
  EXPECT_EQ(interpret(x), f32({1.5f, 3.5f, 3.5f}));
}

TEST(Operators, CarryTheUsersLine) {
  Tensor x = floats();
  Tensor sum = x + 1;
  EXPECT_EQ(sum.where().line, static_cast<std::uint32_t>(__LINE__ - 1));
  x += 1;
  EXPECT_EQ(x.where().line, static_cast<std::uint32_t>(__LINE__ - 1));
}

template <class T>
concept HasEquality = requires(const T& a) {
  a == a;
};
static_assert(!HasEquality<Tensor>, "generic code would take a tensor for a bool");
static_assert(std::same_as<decltype(2 + 3.0), double>);

}  // namespace

namespace meshard {
namespace {

TEST(Assign, RebindsTheHandleOnly) {
  HostArray before = HostArray::full({DType::f32, {2}}, 1),
            after = HostArray::full({DType::f32, {2}}, 2);
  Tensor x = from_host(before), copy = x;
  assign(x, after);
  EXPECT_EQ(x.to_host(), after);
  EXPECT_EQ(copy.to_host(), before);
  EXPECT_EQ(x.where().line, static_cast<unsigned>(__LINE__ - 3));
}

TEST(Assign, AnotherTypeIsAnErrorWithBoth) {
  Tensor x = input({2, 3});
  EXPECT_TRUE(throws_error(
      [&] {
        assign(x, HostArray::zeros({DType::f32, {3, 2}}));
      },
      ErrorCode::kInvalidArgument, {"operators_test.cc:", "[assign]", "f32[3,2]", "f32[2,3]"}));
}

}  // namespace
}  // namespace meshard
