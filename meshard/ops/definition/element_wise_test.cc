#include "meshard/ops/definition/element_wise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/power.h"
#include "meshard/ops/rounding.h"
#include "meshard/ops/selection.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"
#include "tests/support/op_samples/op_samples.h"

// As in a user's file: calls with plain numbers still mean the C library's functions.
namespace user {
using namespace meshard;
static_assert(std::is_same_v<decltype(exp(2.0)), double>);
static_assert(std::is_same_v<decltype(exp(2)), double>);
static_assert(std::is_same_v<decltype(sqrt(2.0)), double>);
static_assert(std::is_same_v<decltype(pow(2.0, 3)), double>);
static_assert(std::is_same_v<decltype(round(2.5)), double>);
static_assert(std::is_same_v<decltype(floor(2.5)), double>);
static_assert(std::is_same_v<decltype(abs(-3)), int>);
static_assert(std::is_same_v<decltype(exp(std::declval<Tensor>())), Tensor>);
static_assert(std::is_same_v<decltype(pow(std::declval<Tensor>(), 2)), Tensor>);
static_assert(std::is_same_v<decltype(pow(2.0, std::declval<Tensor>())), Tensor>);
static_assert(std::is_same_v<decltype(2 * std::declval<Tensor>()), Tensor>);
static_assert(std::is_same_v<decltype(2 * 3.0), double>);
}  // namespace user

namespace meshard {
namespace {

Tensor of(DType dtype, Shape shape) {
  return from_host(HostArray::zeros({dtype, std::move(shape)}));
}

TEST(ElementWise, PromotesAsTheArrayApi) {
  auto sum = [](DType a, DType b) { return add(of(a, {2}), of(b, {2})).dtype(); };
  EXPECT_EQ(sum(DType::i8, DType::i32), DType::i32);
  EXPECT_EQ(sum(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(sum(DType::f32, DType::f64), DType::f64);
  EXPECT_EQ(sum(DType::bf16, DType::f32), DType::f32);
  EXPECT_EQ(sum(DType::i32, DType::bf16), DType::bf16);
  EXPECT_EQ(sum(DType::bool_, DType::i8), DType::i8);
}

TEST(ElementWise, NumbersAreWeak) {
  EXPECT_EQ(add(of(DType::bf16, {2}), 1.5).dtype(), DType::bf16);
  EXPECT_EQ(add(2, of(DType::u8, {2})).dtype(), DType::u8);
  EXPECT_EQ(add(of(DType::i32, {2}), 0.5).dtype(), DType::f32);
  EXPECT_EQ(multiply(of(DType::f64, {2}), true).dtype(), DType::f64);
  EXPECT_EQ(add(1, 2).dtype(), DType::i32);
  EXPECT_EQ(add(1, 2.0).dtype(), DType::f32);
}

TEST(ElementWise, WholeNumbersAreConstantsAndFractionsAreArgumentsUnlessTraced) {
  Tensor x = of(DType::f32, {});
  auto right = [](const Tensor& t) { return t.value()->operands()[1]->op().name; };
  EXPECT_EQ(right(add(x, 2)), "constant");
  EXPECT_EQ(right(add(x, true)), "constant");
  EXPECT_EQ(right(add(x, 2.0)), "array");
  internal::TraceScope trace;
  EXPECT_EQ(right(add(x, 2.0)), "constant");
}

TEST(ElementWise, NumbersAreHeldExactlyOrRefused) {
  auto number = [](const Tensor& t) { return interpret(Tensor(t.value()->operands()[1])); };
  auto refused = [](DType dtype, auto call, const char* shown) {
    return throws_error([&] { (void)call(of(dtype, {})); }, ErrorCode::kInvalidArgument,
                        {"element_wise_test.cc:", cat(dtype, " cannot hold ", shown)});
  };
  EXPECT_TRUE(refused(
      DType::u8, [](Tensor x) { return add(x, -1); }, "-1"));
  EXPECT_TRUE(refused(
      DType::i16, [](Tensor x) { return add(65537, x); }, "65537"));
  EXPECT_TRUE(refused(
      DType::u8, [](Tensor x) { return less(x, 300); }, "300"));
  EXPECT_TRUE(refused(
      DType::i32, [](Tensor x) { return x + 5000000000; }, "5000000000"));
  EXPECT_TRUE(refused(
      DType::f32, [](Tensor x) { return x * 1e300; }, "1e+300"));
  EXPECT_TRUE(refused(
      DType::f16, [](Tensor x) { return x + 100000; }, "100000"));
  EXPECT_TRUE(refused(
      DType::u8, [](Tensor x) { return where(less(x, 1), x, 256); }, "256"));
  std::uint64_t large = 18446744073709551615u;
  EXPECT_EQ(number(add(of(DType::u64, {}), large)), HostArray::scalar(large));
  EXPECT_EQ(number(add(of(DType::f64, {}), large)), HostArray::scalar(0x1p64));
  EXPECT_EQ(number(add(of(DType::i64, {}), -5)), HostArray::scalar(std::int64_t{-5}));
  EXPECT_EQ(number(add(of(DType::f64, {}), 7)), HostArray::scalar(7.0));
}

TEST(ElementWise, FloatFunctionsConvertIntegersToF32) {
  EXPECT_EQ(exp(of(DType::i64, {2})).dtype(), DType::f32);
  EXPECT_EQ(exp(of(DType::bool_, {2})).dtype(), DType::f32);
  EXPECT_EQ(divide(of(DType::i32, {2}), of(DType::i32, {2})).dtype(), DType::f32);
  EXPECT_EQ(divide(of(DType::f16, {2}), 3).dtype(), DType::f16);
}

TEST(ElementWise, BroadcastsAsNumPy) {
  auto shape = [](Shape a, Shape b) {
    return add(of(DType::f32, std::move(a)), of(DType::f32, std::move(b))).shape();
  };
  EXPECT_EQ(shape({8, 1, 6, 1}, {7, 1, 5}), (Shape{8, 7, 6, 5}));
  EXPECT_EQ(shape({}, {3}), (Shape{3}));
  EXPECT_EQ(shape({1}, {0}), (Shape{0}));
  Tensor sum = add(from_host<float>({1, 2}, {2, 1}), from_host<float>({10, 20, 30}, {3}));
  EXPECT_EQ(interpret(sum), HostArray::from_vector<float>({11, 21, 31, 12, 22, 32}, {2, 3}));
}

TEST(ElementWise, UnlikeShapesNameBothAndTheirLines) {
  Tensor a = of(DType::f32, {4, 8}), b = of(DType::f32, {3, 8});
  EXPECT_TRUE(throws_error(
      [&] { add(a, b); }, ErrorCode::kInvalidArgument,
      {"element_wise_test.cc:", "[add]", "[4, 8]", "[3, 8]", "dimension 0 of the first = 4",
       "dimension 0 of the second = 3", "f32[4,8] was made at", "f32[3,8] was made at"}));
}

TEST(ElementWise, ErrorsAreAtTheUsersLine) {
  Tensor a = of(DType::f32, {4}), b = of(DType::f32, {3});
  std::uint32_t line = 0;
  try {
    line = __LINE__ + 1;
    a + b;
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, line);
  }
}

TEST(ElementWise, BoolsAreNotNumbers) {
  Tensor bools = of(DType::bool_, {2});
  for (auto op : {add, multiply, subtract, maximum})
    EXPECT_TRUE(throws_error([&] { op(bools, bools); }, ErrorCode::kInvalidArgument,
                             {"not bool", "logical_or, logical_and"}));
  EXPECT_TRUE(throws_error([&] { logical_and(of(DType::i32, {2}), bools); },
                           ErrorCode::kInvalidArgument,
                           {"[logical_and] takes bools, not i32", "not_equal(x, 0)"}));
}

TEST(ElementWise, InferRefusesWhatTheFunctionWould) {
  // As for a program that was read from text.
  const OpDef& op = *find_op("add");
  TensorType bools{DType::bool_, Shape{2}}, floats{DType::f32, Shape{2}};
  auto infer = [&](const TensorType& a, const TensorType& b) {
    OpCall call{.op = op, .attributes = nullptr, .operands = {&a, &b}, .results = {}, .where = {}};
    ResultTypes results;
    op.infer(call, results);
  };
  EXPECT_TRUE(throws_error([&] { infer(bools, bools); }, ErrorCode::kInvalidArgument,
                           {"[add]", "not bool"}));
  EXPECT_TRUE(throws_error([&] { infer(bools, floats); }, ErrorCode::kInvalidArgument,
                           {"[add] operand types differ: bool[2] and f32[2]"}));
}

TEST(ElementWise, UndefinedOperandsAreErrors) {
  EXPECT_TRUE(throws_error([] { add(Tensor(), of(DType::f32, {2})); }, ErrorCode::kInvalidArgument,
                           {"[add]", "no value"}));
  EXPECT_TRUE(
      throws_error([] { exp(Tensor()); }, ErrorCode::kInvalidArgument, {"[exp]", "no value"}));
  EXPECT_TRUE(throws_error([] { add(Tensor(), 1); }, ErrorCode::kInvalidArgument, {"no value"}));
}

TEST(ElementWise, DtypesWithoutACommonOneNameBoth) {
  EXPECT_TRUE(throws_error([] { add(of(DType::f8e5m2, {2}), of(DType::f8e4m3fn, {2})); },
                           ErrorCode::kInvalidArgument,
                           {"f8e5m2", "f8e4m3fn", "in [add] of f8e5m2[2] made at"}));
}

TEST(ElementWise, EveryDimensionPassesThrough) {
  Tensor sum = add(of(DType::f32, {4, 8}), of(DType::f32, {4, 8}));
  TensorType type = sum.type();
  OpCall call{.op = sum.value()->op(),
              .attributes = nullptr,
              .operands = {&type, &type},
              .results = {&type},
              .where = {}};
  EXPECT_EQ(element_wise::rule(call).to_string(), "([i, j], [i, j])->([i, j]) {i=4, j=8}");
}

// Each sample records the op with its own name, with the inferred type.
TEST(ElementWise, SamplesRecordWhatInferenceSays) {
  for (const char* name : {"add", "astype", "bitwise_and", "clip", "divide", "equal", "iota",
                           "isfinite", "logical_not", "where"}) {
    const OpDef& op = *find_op(name);
    SampleSource source(3);
    for (const OpSample& sample : samples_of(op, source)) {
      std::vector<Tensor> inputs;
      for (const HostArray& input : sample.inputs) inputs.push_back(from_host(input));
      Tensor result = sample.call(inputs);
      const Node& node = *result.value().node();
      ASSERT_EQ(node.op().name, op.name) << sample.name;
      OpCall call{
          .op = op, .attributes = node.attributes(), .operands = {}, .results = {}, .where = {}};
      for (const Value& operand : node.operands()) call.operands.push_back(&operand.type());
      ResultTypes results;
      op.infer(call, results);
      EXPECT_EQ(results[0], result.type()) << name << ", " << sample.name;
    }
  }
}

// What an op states itself takes precedence over what all element-wise ops have in common.
TEST(ElementWise, DefineAddsWhatIsMissing) {
  constexpr auto kEmit = [](const OpCall&, OpEmission&) {};
  constexpr OpDef kShort = element_wise::define(
      {.name = "short", .domain = DTypeDomain::kFloat, .mnemonic = "chlo.short"});
  EXPECT_EQ(kShort.infer, &element_wise::infer);
  EXPECT_EQ(kShort.sharding_rule, &element_wise::rule);
  EXPECT_EQ(kShort.emit, &element_wise::emit);
  EXPECT_EQ(kShort.batch, &element_wise::batch);
  EXPECT_EQ(kShort.vjp, kNotDifferentiable);
  constexpr OpDef kGiven =
      element_wise::define({.name = "own", .domain = DTypeDomain::kFloat, .emit = kEmit});
  EXPECT_NE(kGiven.emit, &element_wise::emit);
  EXPECT_EQ(kGiven.infer, &element_wise::infer);
  constexpr OpDef kFunction = element_wise::define_function({.name = "f", .mnemonic = "chlo.f"});
  EXPECT_EQ(kFunction.operands, "x");
  EXPECT_EQ(kFunction.domain, DTypeDomain::kFloatOrComplex);
  EXPECT_EQ(kFunction.traits.recomputation, Recomputation::kFunction);
  EXPECT_EQ(kFunction.emit, &element_wise::emit);
  constexpr OpDef kReal =
      element_wise::define_function({.domain = DTypeDomain::kFloat, .mnemonic = "chlo.f"});
  EXPECT_EQ(kReal.domain, DTypeDomain::kFloat);
}

}  // namespace
}  // namespace meshard
