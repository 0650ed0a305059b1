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

// As in jax.numpy.floor_divide.
TEST(FloorDivide, RoundsFloatsDown) {
  std::vector<double> got =
      interpret(floor_divide(vector_of({5.5, -5.5, 5.5, -5.5, 0, 5, -5, 6}),
                             vector_of({2, 2, -2, -2, 3, INFINITY, INFINITY, 0.1})))
          .to_vector<double>();
  EXPECT_EQ(got, (std::vector<double>{2, -3, -3, 2, 0, 0, -1, 59}));
  std::vector<double> odd =
      interpret(floor_divide(vector_of({1, -1, 0, INFINITY, NAN}), vector_of({0, 0, 0, 2, 1})))
          .to_vector<double>();
  EXPECT_EQ(odd[0], INFINITY);
  EXPECT_EQ(odd[1], -INFINITY);
  for (std::size_t i : {2u, 3u, 4u}) EXPECT_TRUE(std::isnan(odd[i])) << i;
}

TEST(FloorDivide, DtypesAndShapes) {
  EXPECT_EQ(floor_divide(input({2, 1}, DType::i8), input({3}, DType::i8)).type(),
            (TensorType{DType::i8, {2, 3}}));
  EXPECT_EQ(floor_divide(input({3}, DType::i32), 2.5).type(), (TensorType{DType::f32, {3}}));
  EXPECT_EQ(floor_divide(7, input({3}, DType::bf16)).type(), (TensorType{DType::bf16, {3}}));
  EXPECT_EQ(floor_divide(input({3}, DType::bool_), true).dtype(), DType::i32);
  EXPECT_TRUE(throws_error([] { floor_divide(input({3}, DType::c64), 2); },
                           ErrorCode::kInvalidArgument,
                           {"magnitude_test.cc:", "[floor_divide]", "c64"}));
}

TEST(Reciprocal, Values) {
  EXPECT_EQ(interpret(reciprocal(vector_of({4, -0.5}))).to_vector<double>(),
            (std::vector<double>{0.25, -2}));
  EXPECT_EQ(reciprocal(input({2}, DType::i32)).dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
