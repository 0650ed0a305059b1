// Composites of complex numbers: values and derivatives agree with JAX, and functions that are not
// defined for complex numbers report errors.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>

#include "meshard/meshard.h"
#include "tests/conformance/conformance.h"
#include "tests/support/matchers.h"

namespace meshard::conformance {
namespace {

using Number = std::complex<float>;
using ComplexNumbers = OnDevices;

Tensor three_numbers() {
  return complex(from_host<float>({1, 2, 0.5f}, {3}), from_host<float>({4, -1, 0.25f}, {3}));
}

std::vector<Number> parts_of(const Tensor& x) {
  std::vector<float> re = real(x).to_vector<float>();
  std::vector<float> im(re.size(), 0);
  if (is_complex(x.dtype())) im = imag(x).to_vector<float>();
  std::vector<Number> out;
  for (std::size_t i = 0; i < re.size(); ++i) out.emplace_back(re[i], im[i]);
  return out;
}

void expect_near(const Tensor& got, const std::vector<Number>& expected, const char* name) {
  std::vector<Number> values = parts_of(got);
  ASSERT_EQ(values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_LT(std::abs(values[i] - expected[i]), 2e-5 * (1 + std::abs(expected[i])))
        << name << " [" << i << "]: " << values[i] << ", JAX has " << expected[i];
}

TEST_F(ComplexNumbers, LogarithmsOfZeroHaveAnAngle) {
  Tensor zero = complex(from_host<float>({0, -0.0f}, {2}), from_host<float>({0, 0}, {2}));
  for (auto logarithm : {log2, log10}) {
    Tensor result = logarithm(zero);
    EXPECT_EQ(real(result).to_vector<float>(), std::vector<float>(2, -HUGE_VALF));
    std::vector<float> angles = imag(result).to_vector<float>();
    EXPECT_EQ(angles[0], 0);
    EXPECT_FALSE(std::isnan(angles[1]));
  }
}

// An elementary function, and that of C, which the array API standard follows.
struct Elementary {
  const char* name;
  Tensor (*ours)(In);
  std::complex<double> (*theirs)(const std::complex<double>&);
};
const std::vector<Elementary>& elementary_functions() {
  using Z = const std::complex<double>&;
  static const std::vector<Elementary> all{
      {"acos", acos, [](Z z) { return std::acos(z); }},
      {"acosh", acosh, [](Z z) { return std::acosh(z); }},
      {"asin", asin, [](Z z) { return std::asin(z); }},
      {"asinh", asinh, [](Z z) { return std::asinh(z); }},
      {"atan", atan, [](Z z) { return std::atan(z); }},
      {"atanh", atanh, [](Z z) { return std::atanh(z); }},
      {"sinh", sinh, [](Z z) { return std::sinh(z); }},
      {"cosh", cosh, [](Z z) { return std::cosh(z); }},
      {"tanh", tanh, [](Z z) { return std::tanh(z); }},
      {"exp", exp, [](Z z) { return std::exp(z); }},
      {"log", log, [](Z z) { return std::log(z); }},
      {"sqrt", sqrt, [](Z z) { return std::sqrt(z); }},
  };
  return all;
}
Tensor numbers_of(const std::vector<std::complex<double>>& values) {
  std::vector<double> re, im;
  for (const auto& z : values) re.push_back(z.real()), im.push_back(z.imag());
  auto count = static_cast<std::int64_t>(values.size());
  return complex(from_host<double>(re, {count}), from_host<double>(im, {count}));
}

// Also at infinities and NaN, and on both sides of the branch cuts.
TEST_F(ComplexNumbers, ElementaryFunctionsAreThoseOfC) {
  std::vector<std::complex<double>> points;
  const std::vector<double> parts{0,  -0.0, 0.25, -0.25,    1,         -1, 2,
                                  -2, 1e-9, 30,   INFINITY, -INFINITY, NAN};
  for (double re : parts)
    for (double im : parts) points.emplace_back(re, im);
  Tensor x = numbers_of(points);
  for (const auto& [name, ours, theirs] : elementary_functions()) {
    Tensor y = ours(x);
    std::vector<double> re = real(y).to_vector<double>(), im = imag(y).to_vector<double>();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::complex<double> expected = theirs(points[i]);
      // C leaves some signs open beside NaN and at infinity; the standard's zero of tanh(inf) has
      // the sign of the imaginary part.
      const bool open = std::isnan(expected.real()) || std::isnan(expected.imag()) ||
                        !std::isfinite(points[i].real()) || !std::isfinite(points[i].imag());
      auto equal_part = [&](double a, double b) {
        if (std::isnan(b)) return std::isnan(a);
        if (b == 0 || std::isinf(b))
          return std::abs(a) == std::abs(b) && (open || std::signbit(a) == std::signbit(b));
        return std::abs(a - b) <= 1e-13 * std::max(1.0, std::abs(expected));
      };
      EXPECT_TRUE(equal_part(re[i], expected.real()) && equal_part(im[i], expected.imag()))
          << name << points[i] << " = (" << re[i] << "," << im[i] << "), C has " << expected;
    }
  }
}

// The derivative of f by central differences of C's function. JAX's gradient of Re f(z) is f'(z).
TEST_F(ComplexNumbers, ElementaryFunctionsHaveTheirDerivatives) {
  const std::vector<std::complex<double>> points{{0.5, 0.75}, {-0.5, 0.75}, {-1.5, -0.5},
                                                 {1.5, 0.25}, {0.25, -2},   {-2, 1}};
  Tensor x = numbers_of(points);
  for (const auto& [name, ours, theirs] : elementary_functions()) {
    Tensor slope = grad([f = ours](Tensor z) { return sum(real(f(z))); })(x);
    std::vector<double> re = real(slope).to_vector<double>(), im = imag(slope).to_vector<double>();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double h = 1e-6;
      const std::complex<double> expected =
          (theirs(points[i] + h) - theirs(points[i] - h)) / (2 * h);
      EXPECT_LT(std::abs(std::complex<double>(re[i], im[i]) - expected), 1e-7)
          << name << points[i] << " has the slope (" << re[i] << "," << im[i] << "), expected "
          << expected;
    }
  }
}

// One function, its values at three_numbers() and the gradient of sum((Re y + 3 Im y) * [1, 2, 3])
// (without the weights for a single y), computed by jax 0.10.2.
struct KnownFunction {
  const char* name;
  Tensor (*f)(Tensor);
  std::vector<Number> values, gradient;
};

TEST_F(ComplexNumbers, CompositesAreThoseOfJax) {
  const std::vector<KnownFunction> known{
      {"reciprocal",
       [](Tensor x) { return reciprocal(x); },
       {{0.05882353f, -0.2352941f}, {0.4f, 0.2f}, {1.6f, -0.8f}},
       {{0.1349481f, -0.1280277f}, {-1.2f, 0.4f}, {17.28f, 24.96f}}},
      {"mean",
       [](Tensor x) { return mean(x); },
       {{1.166667f, 1.083333f}},
       {{0.3333333f, -1.0f}, {0.3333333f, -1.0f}, {0.3333333f, -1.0f}}},
      {"var",
       [](Tensor x) { return var(x); },
       {{4.902778f, 0.0f}},
       {{-0.1111111f, -1.944445f}, {0.5555556f, 1.388889f}, {-0.4444444f, 0.5555555f}}},
      {"std",
       [](Tensor x) { return std_dev(x); },
       {{2.214222f, 0.0f}},
       {{-0.02509033f, -0.4390808f}, {0.1254517f, 0.3136291f}, {-0.1003613f, 0.1254516f}}},
      {"exp2",
       [](Tensor x) { return exp2(x); },
       {{-1.865374f, 0.7213731f}, {3.076956f, -2.555845f}, {1.393033f, 0.2438399f}},
       {{0.2070744f, 4.378954f}, {-6.363894f, -16.33985f}, {4.417884f, -8.183144f}}},
      {"logsumexp",
       [](Tensor x) { return logsumexp(x); },
       {{2.168177f, -1.119476f}},
       {{-0.7334601f, -0.6548524f}, {1.141404f, -2.416796f}, {0.5920563f, 0.07164821f}}},
      {"softmax",
       [](Tensor x) { return softmax(x); },
       {{0.1231097f, -0.2855232f}, {0.8391791f, 0.1007416f}, {0.03771118f, 0.1847817f}},
       {{0.3628431f, 0.9438786f}, {-1.039156f, -0.7431993f}, {0.6763136f, -0.2006801f}}},
      {"log_softmax",
       [](Tensor x) { return log_softmax(x); },
       {{-1.168177f, 5.119476f}, {-0.1681769f, 0.119476f}, {-1.668177f, 1.369476f}},
       {{5.40076f, 0.9291146f}, {-4.848423f, 8.500773f}, {-0.5523374f, -9.429889f}}},
      {"gelu",
       [](Tensor x) { return gelu(x); },
       {{-0.603418f, -0.5793219f}, {2.025804f, -1.077605f}, {0.3263474f, 0.2185869f}},
       {{1.466094f, -6.585611f}, {3.128015f, -5.889565f}, {4.069414f, -7.528367f}}},
      {"soft_sign",
       [](Tensor x) { return soft_sign(x); },
       {{0.1951941f, 0.7807764f}, {0.618034f, -0.309017f}, {0.3207149f, 0.1603575f}},
       {{0.07506388f, -0.1050614f}, {0.7888544f, -1.768692f}, {0.5443039f, -5.082876f}}},
      {"silu",
       [](Tensor x) { return silu(x); },
       {{2.8624f, 4.217134f}, {1.745178f, -1.117061f}, {0.2973868f, 0.1855703f}},
       {{-0.7486666f, 3.39483f}, {2.246461f, -7.036145f}, {3.241496f, -6.389101f}}},
  };
  for (const auto& [name, f, values, gradient] : known) {
    Tensor x = three_numbers(), y = f(x);
    expect_near(y, values, name);
    Tensor slope = grad([f = f](Tensor t) {
      Tensor of = f(t);
      Tensor part = is_complex(of.dtype()) ? real(of) + imag(of) * 3 : of;
      return of.rank() == 0 ? part : sum(part * from_host<float>({1, 2, 3}, {3}));
    })(x);
    expect_near(slope, gradient, name);
  }
  EXPECT_EQ(var(three_numbers()).dtype(), DType::f32);
  EXPECT_EQ(std_dev(astype(three_numbers(), DType::c128)).dtype(), DType::f64);
}

TEST_F(ComplexNumbers, AreAddedUpWhole) {
  Tensor x = three_numbers(), segments = from_host<std::int32_t>({1, 1, 0}, {3});
  // The means of 1+4i and 2-i, and of 0.5+0.25i alone.
  expect_near(segment_mean(x, segments, 2), {{0.5f, 0.25f}, {1.5f, 1.5f}}, "segment_mean");
  Tensor rows = reshape(x, {1, 3, 1});
  expect_near(avg_pool(rows, {2}, {.strides = {1}}), {{1.5f, 1.5f}, {1.25f, -0.375f}}, "avg_pool");
  // Every element is 0 or twice its original value.
  std::vector<Number> dropped = parts_of(dropout(x, 0.5, random::key(1))), whole = parts_of(x);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(dropped[i] == Number() || dropped[i] == whole[i] * 2.0f) << dropped[i];
  // |1+4i|^2 + |2-i|^2 + |0.5+0.25i|^2 = 17 + 5 + 0.3125
  EXPECT_NEAR(optim::global_norm(x).item<float>(), std::sqrt(22.3125), 1e-5);
  optim::LossScale scale = optim::init(optim::LossScaling{.first = 2});
  expect_near(optim::unscaled(scale, x).first, {{0.5f, 2}, {1, -0.5f}, {0.25f, 0.125f}},
              "unscaled");
}

TEST_F(ComplexNumbers, AreRefusedByNameWhereTheyHaveNoMeaning) {
  Tensor x = three_numbers(), real_ = ones({3}), row = reshape(x, {1, 3});
  Tensor heads = reshape(x, {1, 1, 1, 3}), real_heads = ones({1, 1, 1, 3});
  const std::vector<std::pair<const char*, std::function<void()>>> refused{
      {"relu", [&] { relu(x); }},
      {"relu6", [&] { relu6(x); }},
      {"leaky_relu", [&] { leaky_relu(x); }},
      {"elu", [&] { elu(x); }},
      {"celu", [&] { celu(x); }},
      {"selu", [&] { selu(x); }},
      {"gelu", [&] { gelu(x, GeluForm::kErf); }},
      {"mish", [&] { mish(x); }},
      {"log_sigmoid", [&] { log_sigmoid(x); }},
      {"hard_tanh", [&] { hard_tanh(x); }},
      {"hard_sigmoid", [&] { hard_sigmoid(x); }},
      {"hard_silu", [&] { hard_silu(x); }},
      {"hypot", [&] { hypot(x, 1); }},
      {"hypot", [&] { hypot(1, x); }},
      {"copysign", [&] { copysign(real_, x); }},
      {"copysign", [&] { copysign(x, real_); }},
      {"signbit", [&] { signbit(x); }},
      {"cumulative_logsumexp", [&] { cumulative_logsumexp(x); }},
      {"layer_norm", [&] { layer_norm(x); }},
      {"layer_norm", [&] { layer_norm(real_, x, real_); }},
      {"rms_norm", [&] { rms_norm(x); }},
      {"rms_norm", [&] { rms_norm(real_, x); }},
      {"group_norm", [&] { group_norm(row, real_, real_, 1); }},
      {"batch_norm", [&] { batch_norm(row, real_, real_); }},
      {"batch_norm",
       [&] {
         batch_norm(ones({1, 3}), x, real_);
       }},
      {"cross_entropy", [&] { cross_entropy(row, zeros({1}, DType::i32)); }},
      {"binary_cross_entropy", [&] { binary_cross_entropy(x, real_); }},
      {"binary_cross_entropy", [&] { binary_cross_entropy(real_, x); }},
      {"dot_product_attention", [&] { dot_product_attention(heads, real_heads, real_heads); }},
      {"dot_product_attention",
       [&] { dot_product_attention(real_heads, real_heads, real_heads, {.bias = x}); }},
      {"rotary_embedding",
       [&] {
         rotary_embedding(reshape(row, {3, 1, 1}), arange(3));
       }},
      {"optim.scaled", [&] { optim::scaled(optim::init(optim::LossScaling{}), sum(x)); }},
  };
  for (const auto& [name, call] : refused)
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {name, "c64"})) << name;
}

}  // namespace
}  // namespace meshard::conformance
