#include "meshard/ops/composite/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/composite/random.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const std::vector<double> kPoints{-3, -0.5, 0, 0.25, 2};

void expect_near(const Tensor& got, double (*expected)(double), double tolerance = 1e-12) {
  std::vector<double> values = interpret(got).to_vector<double>();
  for (std::size_t i = 0; i < kPoints.size(); ++i)
    EXPECT_NEAR(values[i], expected(kPoints[i]), tolerance) << kPoints[i];
}
Tensor points() { return from_host(kPoints, {5}); }

TEST(Activation, Relu) {
  expect_near(relu(points()), [](double x) { return std::fmax(x, 0); });
  Tensor at_zero = relu(from_host<double>({0, NAN}, {2}));
  EXPECT_TRUE(std::isnan(interpret(at_zero).at<double>({1})));
  // where(x <= 0, 0, x): the third operand is x, which gets no cotangent at zero.
  Tensor slope = recorded_vjp(at_zero, from_host<double>({1, 1}, {2}))[2];
  EXPECT_EQ(interpret(slope), HostArray::from_vector<double>({0, 1}));
}

TEST(Activation, GeluIsTheDefinition) {
  expect_near(gelu(points(), GeluForm::kErf),
              [](double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); });
  // The tanh form differs from the definition, by less than 5e-4.
  auto definition = [](double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); };
  expect_near(gelu(points()), definition, 5e-4);
  EXPECT_GT(std::abs(interpret(gelu(points())).at<double>({4}) - definition(2)), 1e-5);
}

// x / 2 * erfc(-x / sqrt(2)) at -3.6 and -5, where 1 + erf rounds to 0 in narrow floats.
TEST(Activation, GeluOfLargeNegativeNumbersDoesNotCancel) {
  Tensor x = from_host<double>({-3.6, -5}, {2});
  HostArray wide = interpret(gelu(x, GeluForm::kErf));
  EXPECT_NEAR(wide.at<double>({0}), -5.7279092e-4, 1e-10);
  EXPECT_NEAR(wide.at<double>({1}), -1.4332579e-6, 1e-12);
  HostArray narrow = interpret(astype(gelu(astype(x, DType::bf16), GeluForm::kErf), DType::f64));
  EXPECT_NEAR(narrow.at<double>({0}), -5.86e-4, 3e-5);
}

// x / (1 + exp(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), where 1 + tanh(u) rounds to 0 in
// f32.
TEST(Activation, GeluByTanhOfLargeNegativeNumbersDoesNotCancel) {
  std::vector<float> x{-5, -5.5f, -6.5f};
  std::vector<float> got = interpret(gelu(from_host(x, {3}))).to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    double v = x[i], u = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
    double expected = v / (1 + std::exp(-2 * u));
    EXPECT_NEAR(got[i], expected, 1e-5 * std::abs(expected)) << v;
  }
}

TEST(Activation, SoftplusRefusesComplexNumbers) {
  Tensor x = from_host(HostArray::zeros({DType::c64, Shape{2}}));
  EXPECT_TRUE(throws_error([&] { softplus(x); }, ErrorCode::kInvalidArgument,
                           {"[softplus] takes real numbers, not c64[2]"}));
  EXPECT_TRUE(throws_error([&] { mish(x); }, ErrorCode::kInvalidArgument,
                           {"[mish] takes real numbers, not c64[2]"}));
}

TEST(Activation, GeluKeepsTheDtypeAndHasNoArguments) {
  Tensor x = from_host(HostArray::zeros({DType::bf16, Shape{4}}));
  EXPECT_EQ(gelu(x).dtype(), DType::bf16);
  EXPECT_EQ(gelu(from_host<std::int32_t>({1, 2}, {2})).dtype(), DType::f32);
  EXPECT_EQ(Graph::build({}, std::vector{gelu(x).value()}, 0).captured().size(), 1u);
}

TEST(Activation, SiluAndSoftplus) {
  expect_near(silu(points()), [](double x) { return x / (1 + std::exp(-x)); });
  expect_near(softplus(points()), [](double x) { return std::log(1 + std::exp(x)); });
  std::vector<double> far =
      interpret(softplus(from_host<double>({-1000, 1000}, {2}))).to_vector<double>();
  EXPECT_EQ(far, (std::vector<double>{0, 1000}));
}

TEST(Activation, PiecesAndPowers) {
  auto power_below = [](double x) { return x > 0 ? x : std::exp(x) - 1; };
  expect_near(elu(points()), power_below);
  expect_near(elu(points(), 2), [](double x) { return x > 0 ? x : 2 * (std::exp(x) - 1); });
  expect_near(celu(points()), power_below);
  expect_near(celu(points(), 2), [](double x) { return x > 0 ? x : 2 * (std::exp(x / 2) - 1); });
  expect_near(selu(points()), [](double x) {
    return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * (std::exp(x) - 1));
  });
  expect_near(leaky_relu(points()), [](double x) { return x < 0 ? x / 100 : x; });
  expect_near(leaky_relu(points(), 0.5), [](double x) { return x < 0 ? x / 2 : x; });
  expect_near(hard_tanh(points()), [](double x) { return std::fmin(std::fmax(x, -1), 1); });
  expect_near(hard_sigmoid(points()),
              [](double x) { return std::fmin(std::fmax(x + 3, 0), 6) / 6; });
  expect_near(hard_silu(points()),
              [](double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; });
  expect_near(multiply(relu6(multiply(points(), 4)), 1),
              [](double x) { return std::fmin(std::fmax(4 * x, 0), 6); });
}

TEST(Activation, Smooth) {
  expect_near(log_sigmoid(points()), [](double x) { return -std::log(1 + std::exp(-x)); });
  expect_near(mish(points()), [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); });
  expect_near(soft_sign(points()), [](double x) { return x / (1 + std::fabs(x)); });
  std::vector<double> far =
      interpret(log_sigmoid(from_host<double>({-1000, 1000}, {2}))).to_vector<double>();
  EXPECT_EQ(far, (std::vector<double>{-1000, 0}));
}

TEST(Activation, Gates) {
  Tensor x = from_host<double>({1, 2, 0, 3}, {1, 4}), gate = from_host<double>({1}, {1});
  std::vector<double> gated = interpret(glu(x)).to_vector<double>();
  EXPECT_DOUBLE_EQ(gated[0], 0.5);
  EXPECT_DOUBLE_EQ(gated[1], 2 / (1 + std::exp(-3.0)));
  EXPECT_DOUBLE_EQ(interpret(swiglu(gate, from_host<double>({7}, {1}))).item<double>(),
                   7 / (1 + std::exp(-1.0)));
  EXPECT_NEAR(interpret(geglu(gate, from_host<double>({7}, {1}), GeluForm::kErf)).item<double>(),
              7 * 0.5 * std::erfc(-std::sqrt(0.5)), 1e-12);
  EXPECT_TRUE(throws_error(
      [] {
        glu(from_host<float>({1, 2, 3}, {3}));
      },
      ErrorCode::kInvalidArgument, {"activation_test.cc:", "= 3", "f32[3]"}));
}

TEST(Dropout, KeepsTheMeanAndDropsTheRate) {
  Tensor key = random::key(3);
  std::vector<double> ones(4000, 1.0);
  std::vector<double> kept =
      interpret(dropout(from_host(ones, {4000}), 0.25, key)).to_vector<double>();
  int dropped = 0;
  for (double value : kept) {
    EXPECT_TRUE(value == 0 || value == 1 / 0.75) << value;
    dropped += value == 0;
  }
  // Binomial: 1000 with deviation 27.
  EXPECT_NEAR(dropped, 1000, 6 * 27);
  EXPECT_EQ(interpret(dropout(from_host(ones, {4000}), 0.25, key)).to_vector<double>(), kept)
      << "one key, one mask";
}

TEST(Dropout, ItsEnds) {
  Tensor x = from_host<float>({1, 2, 3}, {3}), key = random::key(0);
  EXPECT_EQ(interpret(dropout(x, 0, key)), HostArray::from_vector<float>({1, 2, 3}));
  EXPECT_EQ(interpret(dropout(x, 1, key)), HostArray::from_vector<float>({0, 0, 0}));
  EXPECT_EQ(dropout(input({4}, DType::bf16), 0.5, key).dtype(), DType::bf16);
  EXPECT_TRUE(throws_error([&] { dropout(x, 1.5, key); }, ErrorCode::kInvalidArgument,
                           {"activation_test.cc:", "1.5"}));
  EXPECT_TRUE(throws_error([&] { dropout(x, 0.5, x); }, ErrorCode::kInvalidArgument, {"f32[3]"}));
}

}  // namespace
}  // namespace meshard
