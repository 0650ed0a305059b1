// Convolutions, windows, Fourier transforms and linear algebra on the plugin, compared with plain
// loops and with their defining properties.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "meshard/meshard.h"
#include "tests/conformance/conformance.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using Structured = OnDevices;
using Doubles = std::vector<double>;

std::vector<HostArray> values(std::span<const HostArray> inputs, const Body& body) {
  return run(*compile(trace(inputs, body)), inputs);
}

HostArray unit_matrix(std::int64_t size) {
  Doubles elements(static_cast<std::size_t>(size * size), 0.0);
  for (std::size_t i = 0; i < elements.size(); i += static_cast<std::size_t>(size) + 1)
    elements[i] = 1;
  return HostArray::from_vector(std::move(elements), {size, size});
}

double at(const HostArray& x, std::span<const std::int64_t> index) {
  std::size_t flat = 0;
  for (int d = 0; d < x.rank(); ++d)
    flat = flat * static_cast<std::size_t>(x.shape()[d]) +
           static_cast<std::size_t>(index[static_cast<std::size_t>(d)]);
  return x.data<double>()[flat];
}

// The convolution with features last and one spatial dimension, computed from its definition.
double convolved(const HostArray& x, const HostArray& kernel, const ConvolutionOptions& o,
                 std::int64_t low, std::int64_t batch, std::int64_t place, std::int64_t feature) {
  std::int64_t per_group = kernel.shape()[1], out = kernel.shape()[2];
  std::int64_t group = feature / (out / (o.feature_groups * o.batch_groups));
  double sum = 0;
  for (std::int64_t k = 0; k < kernel.shape()[0]; ++k) {
    std::int64_t position = place * o.strides[0] + k * o.kernel_dilation[0] - low;
    if (position % o.input_dilation[0] != 0) continue;
    std::int64_t from = position / o.input_dilation[0];
    if (position < 0 || from >= x.shape()[1]) continue;
    for (std::int64_t i = 0; i < per_group; ++i) {
      std::int64_t row =
          o.batch_groups > 1 ? group * (x.shape()[0] / o.batch_groups) + batch : batch;
      std::int64_t in = o.feature_groups > 1 ? group * per_group + i : i;
      sum += at(x, std::array{row, from, in}) * at(kernel, std::array{k, i, feature});
    }
  }
  return sum;
}

TEST_F(Structured, ConvolutionsAreTheirDefinition) {
  TestRandom random;
  SampleSource source(random());
  for (int round = 0; round < 24; ++round) {
    std::int64_t groups = random.between(1, 3);
    bool of_batch = random.between(0, 1) == 1;
    std::int64_t features = random.between(1, 3), low = random.between(-1, 3);
    ConvolutionOptions options{.strides = {random.between(1, 3)},
                               .padding = {{low, random.between(-1, 3)}},
                               .input_dilation = {random.between(1, 3)},
                               .kernel_dilation = {random.between(1, 2)},
                               .feature_groups = of_batch ? 1 : groups,
                               .batch_groups = of_batch ? groups : 1};
    std::int64_t batch = 2 * options.batch_groups, length = random.between(4, 7);
    std::vector<HostArray> inputs{
        source.uniform(DType::f64, {batch, length, features * options.feature_groups}),
        source.uniform(DType::f64,
                       {random.between(1, 3), features, groups * random.between(1, 2)})};
    HostArray got = values(inputs, [&](std::span<const Tensor> x) {
      return std::vector{convolution(x[0], x[1], options)};
    })[0];
    for (std::int64_t b = 0; b < got.shape()[0]; ++b)
      for (std::int64_t p = 0; p < got.shape()[1]; ++p)
        for (std::int64_t f = 0; f < got.shape()[2]; ++f)
          ASSERT_NEAR(at(got, std::array{b, p, f}),
                      convolved(inputs[0], inputs[1], options, low, b, p, f), 1e-12)
              << "round " << round << ", element " << b << ", " << p << ", " << f;
    tally("convolutions compared with plain loops");
  }
}

// A transposed convolution is the transpose of the convolution with the same strides and padding:
// the cotangent of its input, except for the order of the kernel's elements and features.
TEST_F(Structured, TransposedConvolutionsAreCotangentsOfConvolutions) {
  SampleSource source(test_seed());
  for (std::int64_t kernel : {1, 2, 3, 4})
    for (std::int64_t stride : {1, 2, 3}) {
      std::vector<HostArray> inputs{source.uniform(DType::f64, {1, 4, 2}),
                                    source.uniform(DType::f64, {kernel, 2, 3})};
      std::vector<HostArray> got = values(inputs, [&](std::span<const Tensor> x) {
        Tensor y = conv_transpose(x[0], x[1], {.strides = {stride}});
        Tensor long_zeros = zeros({1, y.shape()[1], 3}, DType::f64);
        Tensor weights = permute_dims(flip(x[1], 0), {0, 2, 1});
        auto [forward, pull] =
            vjp([&](const Tensor& z) { return convolution(z, weights, {.strides = {stride}}); },
                long_zeros);
        Tensor sized = pad(x[0], 0, {0, 0, 0}, {0, forward.shape()[1] - 4, 0});
        return std::vector{y, std::get<0>(pull(sized))};
      });
      EXPECT_TRUE(close(got[0], got[1], 4)) << kernel << " " << stride;
    }
}

TEST_F(Structured, PoolsWithAndWithoutPadding) {
  std::vector<HostArray> inputs{HostArray::from_vector<double>({1, -2, 3, 5, 4}, {1, 5, 1})};
  std::vector<HostArray> got = values(inputs, [](std::span<const Tensor> x) {
    PoolOptions same{.strides = {2}, .padding = Padding::kSame};
    PoolOptions present = same;
    present.count_padding = false;
    return std::vector{max_pool(x[0], {3}, same), avg_pool(x[0], {3}, same),
                       avg_pool(x[0], {3}, present), max_pool(x[0], {2})};
  });
  EXPECT_EQ(got[0].to_vector<double>(), (Doubles{1, 5, 5}));
  EXPECT_TRUE(close(got[1], HostArray::from_vector<double>({-1 / 3., 2, 3}, {1, 3, 1}), 2));
  EXPECT_TRUE(close(got[2], HostArray::from_vector<double>({-0.5, 2, 4.5}, {1, 3, 1}), 2));
  EXPECT_EQ(got[3].to_vector<double>(), (Doubles{1, 5}));
}

// The first of equal elements receives the cotangent, as in JAX.
TEST_F(Structured, TiesOfPoolingGoToTheFirst) {
  std::vector<HostArray> inputs{
      HostArray::from_vector<float>({2, 2, 1, 1, 3, 0, 0, 3}, {1, 4, 2, 1})};
  for (bool dilated : {false, true}) {
    HostArray got = values(inputs, [&](std::span<const Tensor> x) {
      return std::vector{grad([&](const Tensor& z) {
        return sum(dilated ? max_pool(z, {2, 2}, {.strides = {1, 1}, .dilation = {2, 1}})
                           : max_pool(z, {2, 2}));
      })(x[0])};
    })[0];
    Doubles expected = dilated ? Doubles{0, 0, 0, 0, 1, 0, 0, 1} : Doubles{1, 0, 0, 0, 1, 0, 0, 0};
    EXPECT_EQ(got.astype(DType::f64).to_vector<double>(), expected);
  }
}

TEST_F(Structured, FourierTransformsAreTheirDefinition) {
  SampleSource source(test_seed());
  for (std::int64_t n : {1, 2, 5, 8}) {
    HostArray z = source.uniform(DType::c128, {n});
    HostArray got =
        values({&z, 1}, [](std::span<const Tensor> x) { return std::vector{fft(x[0])}; })[0];
    for (std::int64_t k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (std::int64_t j = 0; j < n; ++j)
        sum += std::complex<double>(z.at<Complex128>({j})) *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k) /
                                   static_cast<double>(n));
      EXPECT_NEAR(std::abs(sum - std::complex<double>(got.at<Complex128>({k}))), 0, 1e-12);
    }
  }
}

TEST_F(Structured, InverseTransformsInvert) {
  SampleSource source(test_seed());
  std::vector<HostArray> inputs{source.uniform(DType::f64, {3, 4, 7}),
                                source.uniform(DType::c128, {3, 4, 5})};
  std::vector<HostArray> got = values(inputs, [](std::span<const Tensor> x) {
    return std::vector{irfft(rfft(x[0]), 7), irfftn(rfftn(x[0]), {}, 7),
                       ifft(fft(x[1], std::nullopt, 1), std::nullopt, 1), ifftn(fftn(x[1])),
                       real(ifftn(fftn(x[0], {0, 2}), {0, 2}))};
  });
  for (std::size_t i : {0, 1, 4}) EXPECT_TRUE(close(got[i], inputs[0], 16)) << i;
  for (std::size_t i : {2, 3}) EXPECT_TRUE(close(got[i], inputs[1], 16)) << i;
}

TEST_F(Structured, ComplexArithmeticIsTheStandardLibrarys) {
  using Z = std::complex<double>;
  struct Row {
    const char* name;
    Tensor (*ours)(In);
    Z (*theirs)(const Z&);
  };
  const Row rows[] = {
      {"exp", exp, std::exp<double>},
      {"log", log, std::log<double>},
      {"sqrt", sqrt, std::sqrt<double>},
      {"sin", sin, std::sin<double>},
      {"cos", cos, std::cos<double>},
      {"tanh", tanh, std::tanh<double>},
      {"tan", tan, std::tan<double>},
      {"conj", conj, [](const Z& z) { return std::conj(z); }},
      {"expm1", expm1, [](const Z& z) { return std::exp(z) - 1.0; }},
      {"log1p", log1p, [](const Z& z) { return std::log(1.0 + z); }},
      {"logistic", logistic, [](const Z& z) { return 1.0 / (1.0 + std::exp(-z)); }},
      {"rsqrt", rsqrt, [](const Z& z) { return 1.0 / std::sqrt(z); }},
      {"negative", negative, [](const Z& z) { return -z; }},
  };
  HostArray z = SampleSource(test_seed()).uniform(DType::c128, {16});
  for (const Row& row : rows) {
    HostArray got =
        values({&z, 1}, [&](std::span<const Tensor> x) { return std::vector{row.ours(x[0])}; })[0];
    for (std::int64_t i = 0; i < 16; ++i) {
      Z expected = row.theirs(Z(z.at<Complex128>({i})));
      EXPECT_NEAR(std::abs(Z(got.at<Complex128>({i})) - expected), 0,
                  1e-12 * (1 + std::abs(expected)))
          << row.name << " of element " << i;
    }
  }
}

// JAX 0.10: jax.grad(lambda z: abs(z)**2)(1 + 2j) is 2 - 4j, that of real(z**3) is 3 * z**2, and so
// on: for the real part of a holomorphic function, the gradient is the function's derivative.
TEST_F(Structured, ComplexGradientsFollowJax) {
  HostArray z = HostArray::scalar(Complex128{1, 2});
  auto gradient = [&](auto f) {
    HostArray got =
        values({&z, 1}, [&](std::span<const Tensor> x) { return std::vector{grad(f)(x[0])}; })[0];
    return std::complex<double>(got.item<Complex128>());
  };
  using Z = std::complex<double>;
  auto expect = [&](Z got, Z expected) { EXPECT_NEAR(std::abs(got - expected), 0, 1e-12); };
  expect(gradient([](const Tensor& x) { return square(abs(x)); }), Z(2, -4));
  expect(gradient([](const Tensor& x) { return real(x * x * x); }), 3.0 * Z(1, 2) * Z(1, 2));
  expect(gradient([](const Tensor& x) { return imag(x * x); }), Z(0, -1) * 2.0 * Z(1, 2));
  expect(gradient([](const Tensor& x) { return real(exp(x)); }), std::exp(Z(1, 2)));
  expect(gradient([](const Tensor& x) { return real(conj(x) * 3); }), 3);
  expect(gradient([](const Tensor& x) { return imag(conj(x)); }), Z(0, 1));
  expect(gradient([](const Tensor& x) { return real(1 / x); }), -1.0 / (Z(1, 2) * Z(1, 2)));
}

TEST_F(Structured, FactorsMultiplyToTheMatrix) {
  SampleSource source(test_seed());
  std::vector<HostArray> inputs{
      source.uniform(DType::f64, {3, 5, 5}), source.uniform(DType::f64, {6, 4}),
      source.uniform(DType::f64, {3, 6}), source.uniform(DType::c128, {4, 4})};
  std::vector<HostArray> got = values(inputs, [](std::span<const Tensor> x) {
    Tensor unit = eye(5, std::nullopt, 0, DType::f64);
    Tensor spd = matmul(x[0], matrix_transpose(x[0])) + unit;
    Tensor lower = cholesky(spd), upper = cholesky(spd, true);
    auto [q, r] = qr(x[1]);
    auto [wide_q, wide_r] = qr(x[2]);
    auto [w, v] = eigh(spd);
    Tensor hermitian =
        matmul(x[3], conj(matrix_transpose(x[3]))) + eye(4, std::nullopt, 0, DType::c128);
    Tensor l = cholesky(hermitian);
    return std::vector{spd,
                       matmul(lower, matrix_transpose(lower)),
                       matmul(matrix_transpose(upper), upper),
                       matmul(v * expand_dims(w, -2), matrix_transpose(v)),
                       matmul(q, r),
                       matmul(wide_q, wide_r),
                       matmul(matrix_transpose(q), q),
                       hermitian,
                       matmul(l, conj(matrix_transpose(l))),
                       triu(lower, 1),
                       tril(r, -1),
                       w - sort(w, -1)};
  });
  for (std::size_t i : {1, 2}) EXPECT_TRUE(close(got[i], got[0], 40)) << i;
  EXPECT_TRUE(close(got[3], got[0], 100));
  EXPECT_TRUE(close(got[4], inputs[1], 40));
  EXPECT_TRUE(close(got[5], inputs[2], 40));
  EXPECT_TRUE(close(got[6], unit_matrix(4), 40));
  EXPECT_TRUE(close(got[8], got[7], 40));
  for (std::size_t i : {9, 10, 11}) EXPECT_EQ(got[i], HostArray::zeros(got[i].type())) << i;
}

TEST_F(Structured, EquationsAreSolved) {
  SampleSource source(test_seed());
  std::vector<HostArray> inputs{source.uniform(DType::f64, {2, 4, 4}),
                                source.uniform(DType::f64, {4, 3}), source.uniform(DType::f64, {4}),
                                source.uniform(DType::c128, {3, 3}),
                                source.uniform(DType::c128, {3, 2})};
  std::vector<HostArray> got = values(inputs, [](std::span<const Tensor> x) {
    return std::vector{matmul(x[0], solve(x[0], x[1])),
                       squeeze(matmul(x[0], expand_dims(solve(x[0], x[2]), -1)), -1),
                       matmul(x[0], inv(x[0])), matmul(x[3], solve(x[3], x[4])),
                       matmul(matrix_power(x[0], 3), matrix_power(x[0], -3))};
  });
  auto twice = [](const HostArray& x) {
    Dimensions sizes = x.shape().sizes();
    sizes.insert(sizes.begin(), 2);
    Doubles both = x.to_vector<double>(), again = both;
    both.insert(both.end(), again.begin(), again.end());
    return HostArray::from_vector(std::move(both), Shape(std::move(sizes)));
  };
  EXPECT_TRUE(close(got[0], twice(inputs[1]), 1e4));
  EXPECT_TRUE(close(got[1], twice(inputs[2]), 1e4));
  EXPECT_TRUE(close(got[2], twice(unit_matrix(4)), 1e4));
  EXPECT_TRUE(close(got[3], inputs[4], 1e4));
  EXPECT_TRUE(close(got[4], twice(unit_matrix(4)), 1e8));
}

TEST_F(Structured, Determinants) {
  // 3 and -2 by cofactors; singular; a permutation of sign -1.
  HostArray x =
      HostArray::from_vector<double>({2, 1, 1, 2, 1, 2, 3, 4, 1, 2, 2, 4, 0, 1, 1, 0}, {4, 2, 2});
  std::vector<HostArray> got = values({&x, 1}, [](std::span<const Tensor> in) {
    auto [sign, logarithm] = slogdet(in[0]);
    return std::vector{det(in[0]), sign, exp(logarithm)};
  });
  Doubles expected{3, -2, 0, -1}, signs{1, -1, 0, -1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(got[0].data<double>()[i], expected[i], 1e-14);
    EXPECT_NEAR(got[2].data<double>()[i], std::abs(expected[i]), 1e-14);
    if (i != 2) {
      EXPECT_EQ(got[1].data<double>()[i], signs[i]);
    }
  }
}

TEST_F(Structured, NormsAreTheirDefinition) {
  HostArray x = HostArray::from_vector<double>({1, -2, 3, 4}, {2, 2});
  std::vector<HostArray> got = values({&x, 1}, [](std::span<const Tensor> in) {
    std::vector<Tensor> norms{matrix_norm(in[0])};
    for (MatrixNorm norm :
         {MatrixNorm::kLargestColumnSum, MatrixNorm::kSmallestColumnSum, MatrixNorm::kLargestRowSum,
          MatrixNorm::kSmallestRowSum, MatrixNorm::kSpectral})
      norms.push_back(matrix_norm(in[0], false, norm));
    double infinity = std::numeric_limits<double>::infinity();
    norms.push_back(vector_norm(in[0], 0, false, infinity));
    norms.push_back(vector_norm(in[0], 0, false, -infinity));
    norms.push_back(grad([](const Tensor& z) { return vector_norm(z * 0); })(in[0]));
    return norms;
  });
  // The squares of the singular values are the roots of s^2 - 30 s + 100.
  Doubles expected{std::sqrt(30.0), 6, 4, 7, 3, std::sqrt(15 + std::sqrt(125.0))};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i].item<double>(), expected[i], 1e-12) << i;
  EXPECT_EQ(got[6].to_vector<double>(), (Doubles{3, 4}));
  EXPECT_EQ(got[7].to_vector<double>(), (Doubles{1, 2}));
  EXPECT_EQ(got[8], HostArray::zeros({DType::f64, {2, 2}}));
}

}  // namespace
}  // namespace meshard::conformance
