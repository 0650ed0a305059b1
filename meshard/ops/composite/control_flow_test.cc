#include "meshard/ops/composite/control_flow.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <unordered_map>

#include "meshard/ops/all.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

struct State {
  Tensor w;
  std::vector<Tensor> rest;
  MESHARD_FIELDS(w, rest)
};
constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;

TEST(ControlFlow, StructuresGoThroughLoops) {
  State first{input({4}), {input({}), input({2})}};
  std::map<std::string, Tensor> xs{{"a", input({3, 4})}, {"b", input({3})}};
  auto [last, ys] = scan(
      [](State s, std::map<std::string, Tensor> x) {
        s.w = add(s.w, x["a"]);
        return std::pair(s, std::pair(x["b"], s.w));
      },
      first, xs);
  EXPECT_EQ(last.rest[1].shape(), (Shape{2}));
  EXPECT_EQ(ys.first.shape(), (Shape{3}));
  EXPECT_EQ(ys.second.shape(), (Shape{3, 4}));
}

TEST(ControlFlow, ACarryOfAnotherTypeIsNamed) {
  State first{input({4}), {input({}), input({2})}};
  EXPECT_TRUE(throws_error(
      [&] {
        scan(
            [](State s, std::tuple<>) {
              s.rest[1] = astype(s.rest[1], DType::f64);
              return std::pair(s, std::tuple<>());
            },
            first, std::tuple<>(), {.length = 3});
      },
      kInvalid, {"control_flow_test.cc:", "[scan] carry.rest[1]", "f32[2]", "f64[2]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        while_loop([](State s) { return less(sum(s.w), 3); },
                   [](State s) {
                     s.rest.pop_back();
                     return s;
                   },
                   first);
      },
      kInvalid, {"[while_loop]", "different lengths"}));
}

// What is not a tensor would silently keep its first value.
// As in JAX: lax.fori_loop(0, 3, lambda i, c: c + x, 0.0) has the dtype of x.
TEST(ControlFlow, ANumberAsCarryTakesTheDtypeOfTheBody) {
  for (DType dtype : {DType::f64, DType::bf16, DType::f32}) {
    Tensor x = full({}, 1.5, dtype);
    auto added = [&](const Tensor& c) { return c + x; };
    EXPECT_EQ(fori_loop(
                  0, 3, [&](Tensor, Tensor c) { return added(c); }, 0.0)
                  .dtype(),
              dtype);
    EXPECT_EQ(while_loop([](Tensor c) { return c < 4.0; }, added, 0.0).dtype(), dtype);
    auto [last, all] =
        scan([&](Tensor c, std::tuple<>) { return std::pair(added(c), c); }, 0, {}, {.length = 2});
    EXPECT_EQ(last.dtype(), dtype);
    EXPECT_EQ(all.dtype(), dtype);
  }
  auto counted = [](const Tensor& c) { return c + 1; };
  EXPECT_EQ(while_loop([](Tensor c) { return c < 4; }, counted, 0).dtype(), DType::i32);
  EXPECT_EQ(while_loop([](Tensor c) { return c < 4; }, [](Tensor c) { return c + 0.5; }, 0).dtype(),
            DType::f32);
}

// A f32 that is converted to f64 would be 0.100000001490116.
TEST(ControlFlow, ANumberAsCarryIsConvertedFromTheNumber) {
  Tensor zero = full({}, 0, DType::f64);
  Tensor last = fori_loop(
      0, 2, [&](Tensor, Tensor c) { return c + zero; }, 0.1);
  const Value& first = last.value()->operands()[1];  // after the counter
  EXPECT_EQ(interpret(Tensor(first)).to_vector<double>(), std::vector<double>{0.1});
}

// Inside the body it is weakly typed in every step, also if its dtype stays the default.
TEST(ControlFlow, ANumberAsCarryIsWeaklyTypedInTheBody) {
  Tensor x = full({}, 1.5, DType::bf16);
  auto [last, products] = scan([&](Tensor c, std::tuple<>) { return std::pair(c * 2.0, c * x); },
                               1.0, {}, {.length = 3});
  EXPECT_EQ(last.dtype(), DType::f32);
  EXPECT_EQ(products.dtype(), DType::bf16);
}

TEST(ControlFlow, WhatDoesNotReplaceANumberIsAnError) {
  EXPECT_TRUE(throws_error(
      [] {
        fori_loop(
            0, 3, [](Tensor, Tensor c) { return astype(c, DType::i32); }, 0.5);
      },
      kInvalid, {"[scan] carry", "f32[]", "i32[]"}));
  EXPECT_TRUE(throws_error(
      [] {
        fori_loop(
            0, 3, [](Tensor, Tensor c) { return broadcast_to(c, {2}); }, 0.5);
      },
      kInvalid, {"[scan] carry", "f32[]", "f32[2]"}));
}

TEST(ControlFlow, NumbersInCarriesAndResultsMustStayTheSame) {
  using Counted = std::pair<Tensor, int>;
  EXPECT_TRUE(throws_error(
      [&] {
        scan([](Counted c, std::tuple<>) { return std::pair(Counted(c.first, c.second + 1), 0); },
             Counted(input({}), 0), std::tuple<>(), {.length = 3});
      },
      kInvalid, {"[scan] [1] is 0 and 1 in the initial carry"}));
  EXPECT_TRUE(throws_error(
      [&] {
        cond(
            input({}, DType::bool_), [](Tensor x) { return Counted(x, 1); },
            [](Tensor x) { return Counted(x, 2); }, input({}));
      },
      kInvalid, {"[cond] [1] is 2 and 1"}));
}

TEST(ControlFlow, BranchesMatchByPath) {
  using Map = std::unordered_map<std::string, Tensor>;
  EXPECT_TRUE(throws_error(
      [&] {
        cond(
            input({}, DType::bool_),
            [](Tensor x) {
              return Map{{"a", x}};
            },
            [](Tensor x) {
              return Map{{"b", x}};
            },
            input({2}));
      },
      kInvalid,
      {"missing from the result of another function: [\"b\"] f32[2]",
       "unexpected in the result of another function: [\"a\"] f32[2]"}));
}

TEST(ControlFlow, LengthsMustAgree) {
  auto f = [](Tensor c, std::pair<Tensor, Tensor>) { return std::pair(c, c); };
  EXPECT_TRUE(throws_error(
      [&] {
        scan(f, input({}), std::pair(input({3}), input({4, 2})));
      },
      kInvalid, {"[scan] xs[1], f32[4,2], has 4 slices, but xs[0] specifies 3"}));
  EXPECT_TRUE(throws_error([&] { scan(f, input({}), std::pair(input({}), input({}))); }, kInvalid,
                           {"no dimension to slice"}));
  EXPECT_TRUE(
      throws_error([&] { scan([](Tensor c, std::tuple<>) { return std::pair(c, c); }, input({})); },
                   kInvalid, {"ScanOptions::length"}));
}

TEST(ControlFlow, BranchesMustGiveTheSame) {
  EXPECT_TRUE(throws_error(
      [] {
        cond(
            equal(input({}), 0), [](Tensor t) { return std::pair(t, sum(t)); },
            [](Tensor t) { return std::pair(t, t); }, input({4}));
      },
      kInvalid, {"[cond] result[1]", "f32[4] in one function", "f32[] in another"}));
  EXPECT_TRUE(throws_error(
      [] {
        cond(
            input({}), [](Tensor t) { return t; }, [](Tensor t) { return t; }, input({4}));
      },
      kInvalid, {"[cond] the predicate", "f32[]"}));
}

TEST(ControlFlow, BoundsAreIntegers) {
  EXPECT_TRUE(throws_error(
      [] {
        fori_loop(
            input({}), 3, [](Tensor, Tensor c) { return c; }, input({4}));
      },
      kInvalid, {"[fori_loop]", "f32[]"}));
}

TEST(ControlFlow, StackedStructures) {
  std::vector<State> two(2, State{input({4}), {input({2})}});
  State stacked = stack_structures(two);
  EXPECT_EQ(stacked.w.shape(), (Shape{2, 4}));
  EXPECT_EQ(slice_structure(stacked, 1).rest[0].shape(), (Shape{2}));
  EXPECT_TRUE(
      throws_error([] { stack_structures(std::vector<State>{}); }, kInvalid, {"at least one"}));
}

}  // namespace
}  // namespace meshard
