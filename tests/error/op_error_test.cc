// Ops with invalid operands.
#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

constexpr auto kInvalid = ErrorCode::kInvalidArgument;

TEST(OpErrors, Shapes) {
  Tensor a = f32({8, 4}), b = f32({8, 3});
  EXPECT_ERROR_HERE(a + b, kInvalid, "[add]", "f32[8,4]", "f32[8,3]");
  EXPECT_ERROR_HERE(matmul(a, b), kInvalid, "f32[8,4]", "f32[8,3]");
  EXPECT_ERROR_HERE(reshape(a, {5, 7}), kInvalid, "[reshape]", "f32[8,4]", "[5, 7]");
  EXPECT_ERROR_HERE(sum(a, {2}), ErrorCode::kOutOfRange, "[sum]", "dimension 2", "rank 2");
  EXPECT_ERROR_HERE(a += b, kInvalid, "[add]", "f32[8,4]", "f32[8,3]");
}

TEST(OpErrors, DTypes) {
  EXPECT_ERROR_HERE(f32({2}) & f32({2}), kInvalid, "f32");
  EXPECT_ERROR_HERE(~f32({2}), kInvalid, "f32");
  auto square_of = [](Tensor x) { return x * x; };
  EXPECT_TRUE(throws_error(
      [&] { (void)grad(square_of)(i32({})); }, kInvalid,
      {"op_error_test.cc:", "argument 0 is i32[]", "only floating-point tensors have gradients"}));
}

TEST(OpErrors, UndefinedOperands) {
  Tensor nothing;
  EXPECT_ERROR_HERE(nothing + 1, kInvalid, "has no value");
  EXPECT_ERROR_HERE(exp(nothing), kInvalid, "[exp]", "has no value");
  EXPECT_ERROR_HERE(nothing.shape(), kInvalid, "has no value");
  EXPECT_ERROR_HERE(nothing.to_host(), kInvalid, "has no value");
  EXPECT_ERROR_HERE(sync({nothing}), kInvalid, "has no value");
}

TEST(OpErrors, Numbers) {
  Tensor x = f32({2, 3});
  EXPECT_ERROR_HERE(x.item<float>(), kInvalid, "f32[2,3]");
  EXPECT_ERROR_HERE(x.to_vector<std::int32_t>(), kInvalid, "f32", "i32");
  EXPECT_ERROR_HERE(x.dim(2), ErrorCode::kOutOfRange, "dimension 2", "rank 2");
  EXPECT_ERROR_HERE(from_host(std::vector<float>{1, 2, 3}, {2}), kInvalid, "3 values", "[2]");
}

TEST(OpErrors, LossesAreNumbers) {
  Tensor x = f32({4});
  std::uint32_t line = 0;
  auto loss = [&](Tensor t) {
    line = __LINE__ + 1;
    return t * 2.0f;
  };
  EXPECT_TRUE(
      throws_error([&] { (void)grad(loss)(x); }, kInvalid, {"f32[4]", "rank 0", "mean or sum"}));
  try {
    (void)grad(loss)(x);
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, line) << error.what();
  }
}

}  // namespace
}  // namespace meshard
