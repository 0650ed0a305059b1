#include "meshard/ops/composite/magnitude.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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

}  // namespace
}  // namespace meshard
