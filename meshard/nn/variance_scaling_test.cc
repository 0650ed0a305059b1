#include "meshard/nn/variance_scaling.h"

#include <gmock/gmock.h>

#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Scaled = OnPlugin;

// With JAX 0.10.2 and key(7), of shape (2, 3): fans 2 and 3.
TEST_F(Scaled, AreThoseOfJax) {
  auto made = [](const Initializer& initializer) {
    return initializer(random::key(7), {2, 3}, {2, 3}, DType::f32);
  };
  expect_near(
      made(init::variance_scaling(1.5, init::Fan::kIn, init::Distribution::kTruncatedNormal)),
      {0.4227199, 1.6489896, -0.4831272, -0.1324084, 0.5749452, 0.3136407});
  expect_near(made(init::variance_scaling(1.5, init::Fan::kOut, init::Distribution::kNormal)),
              {0.3190714, 1.3812984, -0.3650364, -0.0996598, 0.4352219, 0.2363975});
  expect_near(made(init::variance_scaling(1.5, init::Fan::kAverage, init::Distribution::kUniform)),
              {0.4671323, 1.2735308, -0.5290262, -0.1503751, 0.6195337, 0.3513210});
  expect_near(made(init::variance_scaling(1.5, init::Fan::kGeometricMean,
                                          init::Distribution::kTruncatedNormal)),
              {0.3819705, 1.4900303, -0.4365548, -0.1196445, 0.5195216, 0.2834064});
  expect_near(made(init::truncated_normal(0.5, -1, 3)),
              {0.2987112, 1.0007285, -0.1098630, 0.0396187, 0.3737121, 0.2459894});
  expect_near(init::delta_orthogonal()(random::key(7), {1, 2, 3}, {}, DType::f32),
              {0.4897351, -0.5602856, 0.6680117, 0.8697620, 0.3672174, -0.3296444});
}

TEST_F(Scaled, KernelsAreOrthogonalInTheMiddle) {
  for (const Shape& shape : {Shape{3, 2, 4}, Shape{2, 3, 4, 4}, Shape{1, 3, 5, 2, 3}}) {
    Tensor kernel = init::delta_orthogonal(2)(random::key(3), shape, {}, DType::f32);
    ASSERT_EQ(kernel.shape(), shape);
    std::int64_t in = shape[shape.rank() - 2], out = shape[shape.rank() - 1], place = 0;
    for (int d = 0; d < shape.rank() - 2; ++d) place = place * shape[d] + (shape[d] - 1) / 2;
    Tensor rows = reshape(kernel, {-1, in, out});
    Tensor matrix = index(rows, {place});
    expect_same(matmul(matrix, matrix_transpose(matrix)), eye(in) * 4, 1e-5);
    EXPECT_NEAR(sum(square(kernel)).item<float>(), 4.0 * static_cast<double>(in), 1e-4);
  }
}

TEST_F(Scaled, RefuseWhatHasNoMeaning) {
  EXPECT_TRUE(
      throws_error([] { init::variance_scaling(0, init::Fan::kIn, init::Distribution::kNormal); },
                   ErrorCode::kInvalidArgument, {"variance_scaling_test.cc:", "scale = 0"}));
  EXPECT_TRUE(throws_error([] { init::truncated_normal(1, 2, 2); }, ErrorCode::kInvalidArgument,
                           {"variance_scaling_test.cc:", "low = 2"}));
  for (const Shape& shape : {Shape{2, 2}, Shape{3, 4, 2}})
    EXPECT_TRUE(
        throws_error([&] { init::delta_orthogonal()(random::key(0), shape, {}, DType::f32); },
                     ErrorCode::kInvalidArgument, {"delta_orthogonal", to_string(shape)}));
}

}  // namespace
}  // namespace meshard::nn
