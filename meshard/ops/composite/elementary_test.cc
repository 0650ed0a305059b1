#include "meshard/ops/composite/elementary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Square, MultipliesByItself) {
  EXPECT_EQ(interpret(square(from_host<std::int32_t>({-3, 4}, {2}))),
            HostArray::from_vector<std::int32_t>({9, 16}));
}

TEST(Logarithm, OfBaseTwoAndTen) {
  for (double x : {0.001, 0.5, 1.0, 2.0, 10.0, 12345.0}) {
    Tensor at = from_host<double>({x}, {1});
    EXPECT_NEAR(interpret(log2(at)).item<double>(), std::log2(x), 1e-14);
    EXPECT_NEAR(interpret(log10(at)).item<double>(), std::log10(x), 1e-14);
  }
  for (double x : {-3.0, 0.0, 0.5, 10.0})
    EXPECT_NEAR(interpret(exp2(from_host<double>({x}, {1}))).item<double>(), std::exp2(x),
                1e-12 * std::exp2(x));
}

TEST(Logarithm, ComputesIntegersInF32) {
  Tensor whole = from_host<std::int32_t>({1, 2}, {2});
  for (auto op : {exp2, log2, log10}) EXPECT_EQ(op(whole).dtype(), DType::f32);
}

TEST(Logaddexp, IsTheLogarithmOfTheSum) {
  std::vector<double> a{0, -1, 3, 0.5}, b{0, 2, -4, 0.25};
  std::vector<double> got =
      interpret(logaddexp(from_host(a, {4}), from_host(b, {4}))).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(got[i], std::log(std::exp(a[i]) + std::exp(b[i])), 1e-12) << i;
}

TEST(Logaddexp, NeverOverflows) {
  const double kInf = INFINITY;
  Tensor a = from_host<double>({1000, -1000, -kInf, -kInf, kInf, 1}, {6});
  Tensor b = from_host<double>({1000, -1000, 5, -kInf, kInf, -kInf}, {6});
  std::vector<double> got = interpret(logaddexp(a, b)).to_vector<double>();
  EXPECT_NEAR(got[0], 1000 + std::log(2.0), 1e-12);
  EXPECT_NEAR(got[1], -1000 + std::log(2.0), 1e-12);
  EXPECT_EQ(got[2], 5);
  EXPECT_EQ(got[3], -kInf);
  EXPECT_EQ(got[4], kInf);
  EXPECT_EQ(got[5], 1);
}

TEST(Logaddexp, RefusesComplexNumbers) {
  Tensor x = from_host(HostArray::zeros({DType::c64, Shape{2}}));
  EXPECT_TRUE(throws_error([&] { logaddexp(x, 1); }, ErrorCode::kInvalidArgument,
                           {"[logaddexp] takes real numbers, not c64[2]"}));
}

TEST(Logaddexp, ComputesIntegersInF32) {
  EXPECT_EQ(logaddexp(from_host<std::int32_t>({1}, {1}), 2).dtype(), DType::f32);
  // 3 - 5 and 0 - 1 do not fit u8, and 127 + 128 does not fit i8.
  std::vector<float> bytes = interpret(logaddexp(from_host<std::uint8_t>({3, 0}, {2}),
                                                 from_host<std::uint8_t>({5, 1}, {2})))
                                 .to_vector<float>();
  EXPECT_NEAR(bytes[0], std::log(std::exp(3.0) + std::exp(5.0)), 1e-5);
  EXPECT_NEAR(bytes[1], std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(interpret(logaddexp(from_host<std::int8_t>({127}, {1}), -128)).to_vector<float>()[0],
            127);
  EXPECT_EQ(logaddexp(from_host<bool>({true}, {1}), false).dtype(), DType::f32);
}

Tensor vector_of(std::vector<double> values) {
  auto count = static_cast<std::int64_t>(values.size());
  return from_host(HostArray::from_vector(std::move(values), {count}));
}

TEST(SignBit, IsThatOfTheBits) {
  Tensor x = vector_of({1, -1, 0, -0.0, -INFINITY, std::copysign(NAN, -1.0), NAN});
  EXPECT_EQ(interpret(signbit(x)),
            HostArray::from_vector<bool>({false, true, false, true, true, true, false}));
  EXPECT_EQ(signbit(input({2}, DType::bf16)).type(), (TensorType{DType::bool_, {2}}));
}

TEST(Copysign, TakesTheSignOfZerosToo) {
  Tensor y = copysign(vector_of({1, -2, 3, -4, 0}), vector_of({1, 1, -0.0, -1, -INFINITY}));
  EXPECT_EQ(interpret(y).to_vector<double>(), (std::vector<double>{1, 2, -3, -4, 0}));
  EXPECT_EQ(interpret(signbit(y)), HostArray::from_vector<bool>({false, false, true, true, true}));
}

TEST(Copysign, DtypesAndShapes) {
  EXPECT_EQ(copysign(input({2, 1}), input({3}, DType::f64)).type(),
            (TensorType{DType::f64, {2, 3}}));
  EXPECT_EQ(copysign(1, input({3}, DType::f64)).type(), (TensorType{DType::f64, {3}}));
  EXPECT_EQ(copysign(input({3}, DType::bf16), -1).type(), (TensorType{DType::bf16, {3}}));
}

TEST(Hypot, DoesNotOverflow) {
  HostArray got = interpret(
      hypot(vector_of({3, 1e200, 0, -5, INFINITY, 0}), vector_of({4, 1e200, 0, 12, NAN, -2})));
  std::vector<double> values = got.to_vector<double>();
  EXPECT_NEAR(values[0], 5, 1e-15);
  EXPECT_NEAR(values[1] / 1e200, std::sqrt(2), 1e-15);
  EXPECT_EQ(values[2], 0);
  EXPECT_NEAR(values[3], 13, 1e-14);
  EXPECT_EQ(values[4], INFINITY);
  EXPECT_EQ(values[5], 2);
}

TEST(Reciprocal, Values) {
  EXPECT_EQ(interpret(reciprocal(vector_of({4, -0.5}))).to_vector<double>(),
            (std::vector<double>{0.25, -2}));
  EXPECT_EQ(reciprocal(input({2}, DType::i32)).dtype(), DType::f32);
}

TEST(SpecialValues, AreFound) {
  Tensor x = from_host<float>({1, NAN, INFINITY, -INFINITY}, {4});
  EXPECT_EQ(interpret(isnan(x)), HostArray::from_vector<bool>({false, true, false, false}));
  EXPECT_EQ(interpret(isinf(x)), HostArray::from_vector<bool>({false, false, true, true}));
}

TEST(SpecialValues, IntegersHaveNone) {
  Tensor x = from_host<std::int32_t>({0, 7}, {2});
  EXPECT_EQ(interpret(isnan(x)), HostArray::from_vector<bool>({false, false}));
  EXPECT_EQ(interpret(isinf(x)), HostArray::from_vector<bool>({false, false}));
}

}  // namespace
}  // namespace meshard
