#include "meshard/nn/initializer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "meshard/nn/nn_testutil.h"

namespace meshard::nn {
namespace {

using Initializers = OnPlugin;

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

// The moments of 40,000 elements. The standard deviation of their mean is 0.5 % of their own.
Moments moments_of(const Initializer& initializer, const Fans& fans) {
  Moments out;
  std::vector<float> numbers =
      initializer(random::key(3), {200, 200}, fans, DType::f32).to_vector<float>();
  for (float x : numbers) out.mean += x / double(numbers.size());
  for (float x : numbers) out.deviation += (x - out.mean) * (x - out.mean) / double(numbers.size());
  out.deviation = std::sqrt(out.deviation);
  for (float x : numbers) out.largest = std::max(out.largest, double(std::abs(x)));
  return out;
}

void expect_moments(const Initializer& initializer, const Fans& fans, double deviation) {
  Moments found = moments_of(initializer, fans);
  EXPECT_NEAR(found.mean, 0, 0.02 * deviation);
  EXPECT_NEAR(found.deviation, deviation, 0.02 * deviation);
}

TEST_F(Initializers, HaveTheVarianceOfTheirPaper) {
  Fans fans{50, 150};
  expect_moments(init::glorot_uniform(), fans, 0.1);  // 2 / 200 = 0.1^2
  expect_moments(init::glorot_normal(), fans, 0.1);
  expect_moments(init::he_uniform(), fans, 0.2);  // 2 / 50 = 0.2^2
  expect_moments(init::he_normal(), fans, 0.2);
  expect_moments(init::lecun_uniform(), {100, 1}, 0.1);
  expect_moments(init::lecun_normal(), {100, 1}, 0.1);
  expect_moments(init::normal(3), fans, 3);
}

TEST_F(Initializers, UniformOnesStayWithinTheirLimit) {
  EXPECT_NEAR(moments_of(init::uniform(0.5), {}).largest, 0.5, 1e-3);
  // The limit sqrt(6 / 200) gives the variance 2 / 200.
  EXPECT_NEAR(moments_of(init::glorot_uniform(), {50, 150}).largest, std::sqrt(0.03), 1e-3);
}

TEST_F(Initializers, TheCutNormalEndsAtTwoDeviations) {
  Moments found = moments_of(init::truncated_normal(0.5), {});
  EXPECT_LE(found.largest, 1);
  EXPECT_GT(found.largest, 0.99);
  // A normal distribution truncated at 2 has the standard deviation 0.87962566, which is sqrt(1 - 2
  // * 2 phi(2) / (2 Phi(2) - 1)).
  EXPECT_NEAR(found.deviation, 0.5 * 0.87962566, 0.01);
}

TEST_F(Initializers, ConstantsAreConstant) {
  EXPECT_THAT(init::ones()(random::key(0), {3}, {}, DType::f32).to_vector<float>(),
              testing::Each(1));
  EXPECT_THAT(init::zeros()(random::key(0), {3}, {}, DType::f32).to_vector<float>(),
              testing::Each(0));
  EXPECT_EQ(init::constant(2.5)(random::key(0), {3}, {}, DType::bf16).dtype(), DType::bf16);
}

TEST_F(Initializers, OrthogonalOnesHaveOrthonormalColumns) {
  // The products of the columns are the identity, times scale^2.
  auto products = [](const Initializer& initializer, const Shape& shape, std::int64_t columns) {
    Tensor w = initializer(random::key(4), shape, {}, DType::f32);
    EXPECT_EQ(w.shape(), shape);
    Tensor matrix = reshape(w, {shape.size() / columns, columns});
    return matmul(matrix_transpose(matrix), matrix);
  };
  expect_same(products(init::orthogonal(), {4, 3}, 3), eye(3));
  expect_same(products(init::orthogonal(3), {2, 5, 4}, 4), eye(4) * 9, 2e-5);
  // More columns than rows: the rows are orthonormal.
  Tensor wide = init::orthogonal()(random::key(4), {2, 5}, {}, DType::f32);
  expect_same(matmul(wide, matrix_transpose(wide)), eye(2));
  // With the columns first: [columns, rows].
  Tensor front = init::orthogonal(1, 0)(random::key(4), {3, 6}, {}, DType::f32);
  expect_same(matmul(front, matrix_transpose(front)), eye(3));
}

TEST_F(Initializers, OrthogonalIsThatOfJax) {
  // jax.nn.initializers.orthogonal()(jax.random.key(7), (3, 3)), JAX 0.10.2
  expect_near(init::orthogonal()(random::key(7), {3, 3}, {}, DType::f32),
              {0.9206921, 0.3407807, -0.1902486, -0.2875721, 0.9218923, 0.2596481, -0.2638718,
               0.1843458, -0.9467779});
}

TEST_F(Initializers, OrthogonalWantsAMatrix) {
  EXPECT_THROW(init::orthogonal()(random::key(0), {3}, {}, DType::f32), Error);
  EXPECT_THROW(init::orthogonal(1, 2)(random::key(0), {3, 3}, {}, DType::f32), Error);
  EXPECT_EQ(init::orthogonal()(random::key(0), {0, 3}, {}, DType::f32).shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace meshard::nn
