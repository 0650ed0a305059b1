// Composites whose values require a compiler; some also compare shards with one device.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "meshard/meshard.h"
#include "tests/conformance/conformance.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using Composites = OnDevices;
using Integers = std::vector<std::int32_t>;

TEST_F(Composites, UniqueFindsTheDistinctElements) {
  Tensor x = from_host<float>({3, 1, 3, 2, 1, 3}, {2, 3});
  Unique all = unique_all(x, 3);
  EXPECT_EQ(all.values.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(all.indices.to_vector<std::int32_t>(), (Integers{1, 3, 0}));
  EXPECT_EQ(all.inverse_indices.to_vector<std::int32_t>(), (Integers{2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(all.counts.to_vector<std::int32_t>(), (Integers{2, 1, 3}));
  EXPECT_EQ(all.number.item<std::int32_t>(), 3);
  // A size larger and smaller than the number of distinct values.
  UniqueCounts more = unique_counts(x, 5);
  EXPECT_EQ(more.values.to_vector<float>(), (std::vector<float>{1, 2, 3, 3, 3}));
  EXPECT_EQ(more.counts.to_vector<std::int32_t>(), (Integers{2, 1, 3, 0, 0}));
  Unique fewer = unique_all(x, 2);
  EXPECT_EQ(fewer.values.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(fewer.counts.to_vector<std::int32_t>(), (Integers{2, 1}));
  EXPECT_EQ(fewer.number.item<std::int32_t>(), 3);
  EXPECT_EQ(unique_inverse(x, 2).inverse_indices.to_vector<std::int32_t>()[0], 2);
  // NaN is not equal to any value.
  Unique odd = unique_all(from_host<float>({NAN, 1, NAN}, {3}), 3);
  EXPECT_EQ(odd.number.item<std::int32_t>(), 3);
  EXPECT_EQ(odd.counts.to_vector<std::int32_t>(), (Integers{1, 1, 1}));
}

TEST_F(Composites, SegmentsAreSummed) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2});
  Tensor segments = from_host<std::int32_t>({2, 0, 2, 9, -1}, {5});
  EXPECT_EQ(segment_sum(x, segments, 3).to_vector<float>(),
            (std::vector<float>{3, 4, 0, 0, 1 + 5, 2 + 6}));
  EXPECT_EQ(segment_mean(x, segments, 3).to_vector<float>(),
            (std::vector<float>{3, 4, 0, 0, 3, 4}));
}

// Same results as jax.ops.segment_*. The last two rows belong to no segment; segment 1 is empty.
TEST_F(Composites, SegmentsAreCombined) {
  using Floats = std::vector<float>;
  using Bytes = std::vector<std::int8_t>;
  Tensor x = from_host<float>({1, 2, 3, -4, 5, 6, 7, 8, 9, 10}, {5, 2}),
         bytes = astype(x, DType::i8);
  Tensor segments = from_host<std::int32_t>({2, 0, 2, 9, -1}, {5});
  EXPECT_EQ(segment_max(x, segments, 3).to_vector<float>(),
            (Floats{3, -4, -INFINITY, -INFINITY, 5, 6}));
  EXPECT_EQ(segment_min(x, segments, 3).to_vector<float>(),
            (Floats{3, -4, INFINITY, INFINITY, 1, 2}));
  EXPECT_EQ(segment_prod(x, segments, 3).to_vector<float>(), (Floats{3, -4, 1, 1, 5, 12}));
  EXPECT_EQ(segment_max(bytes, segments, 3).to_vector<std::int8_t>(),
            (Bytes{3, -4, -128, -128, 5, 6}));
  EXPECT_EQ(segment_min(bytes, segments, 3).to_vector<std::int8_t>(),
            (Bytes{3, -4, 127, 127, 1, 2}));
  EXPECT_EQ(segment_prod(bytes, segments, 3).to_vector<std::int8_t>(), (Bytes{3, -4, 1, 1, 5, 12}));
  // Derivatives: equal elements share the cotangent, and a zero factor must not make the derivative
  // of the other factors NaN.
  Tensor pairs = from_host<std::int32_t>({0, 0, 1}, {3}), weights = from_host<float>({2, 3}, {2});
  auto slopes = [&](auto f, Floats at) {
    return grad([&](Tensor t) { return sum(f(t, pairs, 2) * weights); })(from_host(at, {3}))
        .template to_vector<float>();
  };
  EXPECT_EQ(slopes(segment_max, {4, 4, 1}), (Floats{1, 1, 3}));
  EXPECT_EQ(slopes(segment_min, {4, 5, 1}), (Floats{2, 0, 3}));
  EXPECT_EQ(slopes(segment_prod, {4, 0, 1}), (Floats{0, 8, 3}));
}

// Same results as numpy.remainder, numpy.fmod, their JAX versions and jax.numpy.floor_divide.
TEST_F(Composites, IntegersDividedByZeroLeaveNothing) {
  Tensor a = from_host<std::int32_t>({7, -7, 0, 7, std::numeric_limits<std::int32_t>::min()}, {5});
  Tensor b = from_host<std::int32_t>({0, 0, 0, -3, -1}, {5});
  EXPECT_EQ(remainder(a, b).to_vector<std::int32_t>(), (Integers{0, 0, 0, -2, 0}));
  EXPECT_EQ(fmod(a, b).to_vector<std::int32_t>(), (Integers{0, 0, 0, 1, 0}));
  EXPECT_EQ(floor_divide(a, b).to_vector<std::int32_t>(),
            (Integers{-2, -2, -1, -3, std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ((a % 0).to_vector<std::int32_t>(), Integers(5, 0));
  Tensor bytes = from_host<std::uint8_t>({7, 200, 0}, {3}), none = zeros({3}, DType::u8);
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(remainder(bytes, none).to_vector<std::uint8_t>(), Bytes(3, 0));
  EXPECT_EQ(fmod(bytes, none).to_vector<std::uint8_t>(), Bytes(3, 0));
  EXPECT_EQ(floor_divide(bytes, none).to_vector<std::uint8_t>(), Bytes(3, 255));
  for (float rest : remainder(from_host<float>({1, -1, 0}, {3}), 0).to_vector<float>())
    EXPECT_TRUE(std::isnan(rest));
}

// Pooling returns the first of equal elements in row-major order, with any padding; checked against
// a plain loop.
TEST_F(Composites, TheFirstOfEqualElementsIsPooled) {
  TestRandom random;
  for (int k = 0; k < 12; ++k) {
    std::int64_t height = random.between(2, 7), width = random.between(2, 7);
    std::int64_t step = random.between(1, 2), gap = k % 3 == 0 ? 2 : 1;
    WindowPadding::Pairs pads{{random.between(0, 1), random.between(1, 2)},
                              {random.between(0, 1), random.between(0, 1)}};
    auto [top, bottom] = pads[0];
    auto [left, right] = pads[1];
    std::int64_t rows = height + top + bottom - gap - 1, columns = width + left + right - 2;
    if (rows < 0) continue;
    rows = rows / step + 1;
    columns = columns / step + 1;
    std::vector<float> x(static_cast<std::size_t>(height * width)), expected(x.size()), weights;
    for (float& value : x) value = random.between(0, 2) == 0 ? -INFINITY : 1;
    for (std::int64_t i = 0; i < rows * columns; ++i)
      weights.push_back(static_cast<float>(random.between(1, 9)));
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      std::optional<std::size_t> best;
      for (std::int64_t place = 0; place < 4; ++place) {
        std::int64_t row = i / columns * step - top + place / 2 * gap;
        std::int64_t column = i % columns * step - left + place % 2;
        if (row < 0 || column < 0 || row >= height || column >= width) continue;
        auto at = static_cast<std::size_t>(row * width + column);
        if (!best || x[at] > x[*best]) best = at;
      }
      if (best) expected[*best] += weights[static_cast<std::size_t>(i)];
    }
    Tensor weight = from_host(weights, {1, rows, columns, 1});
    auto pooled = [&](const Tensor& t) {
      return sum(
          weight *
          max_pool(t, {2, 2}, {.strides = {step, step}, .padding = pads, .dilation = {gap, 1}}));
    };
    EXPECT_EQ(grad(pooled)(from_host(x, {1, height, width, 1})).to_vector<float>(), expected) << k;
  }
}

TEST_F(Composites, CumulativeOnesBeginAsTold) {
  Tensor x = from_host<std::int32_t>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(cumulative_prod(x, 0, false, true).to_vector<std::int32_t>(),
            (Integers{1, 1, 1, 2, 3, 8}));
  EXPECT_EQ(cumulative_prod(x, -1, true, true).to_vector<std::int32_t>(),
            (Integers{2, 2, 1, 12, 4, 1}));
}

TEST_F(Composites, SoftmaxOfNothing) {
  EXPECT_EQ(softmax(zeros({0})).to_host().shape(), Shape({0}));
  EXPECT_EQ(log_softmax(zeros({2, 0}), 1).to_host().shape(), Shape({2, 0}));
  EXPECT_EQ(logsumexp(zeros({2, 0}), 1).to_vector<float>(),
            (std::vector<float>{-INFINITY, -INFINITY}));
  EXPECT_EQ(logsumexp(zeros({0}), {}, true).shape(), Shape({1}));
}

// Same results as numpy.fft.hfft and ihfft.
TEST_F(Composites, TransformsOfSymmetricSamples) {
  Tensor x = complex(from_host<float>({1, 2, 3, 4}, {4}), from_host<float>({0, -1, 2, 0}, {4}));
  auto near = [](const Tensor& got, const std::vector<double>& expected) {
    HostArray wanted = HostArray::from_vector(expected).astype(DType::f32);
    return close(got.to_host(), wanted, 8);
  };
  EXPECT_TRUE(near(hfft(x), {15, -2.267949104, -5.19615221, -1, 5.19615221, -5.732050896}));
  EXPECT_TRUE(near(hfft(x, 5), {11, -2.169006109, -5.361762524, 4.597830772, -3.067061901}));
  Tensor y = ihfft(from_host<float>({1, -2, 3, 5, 0.5f}, {5}));
  EXPECT_TRUE(near(real(y), {1.5, -1.187132289, 0.937132289}));
  EXPECT_TRUE(near(imag(y), {0, -0.710642359, 0.0865299804}));
}

// Same results as jax.numpy.floor_divide.
TEST_F(Composites, FloorDivisionOfIntegers) {
  Tensor a = from_host<std::int8_t>({7, -7, 7, -7, 0, 6, -6, 127, -128}, {9});
  Tensor b = from_host<std::int8_t>({2, 2, -2, -2, 3, 3, 3, -1, -1}, {9});
  EXPECT_EQ(floor_divide(a, b).to_vector<std::int8_t>(),
            (std::vector<std::int8_t>{3, -4, -4, 3, 0, 2, -2, -127, -128}));
  EXPECT_EQ(floor_divide(from_host<std::uint8_t>({255, 7}, {2}), 2).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{127, 3}));
  EXPECT_EQ(floor_divide(from_host<std::int32_t>({7, -7}, {2}), 2.5).to_vector<float>(),
            (std::vector<float>{2, -3}));
  EXPECT_EQ(
      grad([](Tensor x) { return sum(floor_divide(x, 2) * x); })(from_host<float>({7, -7}, {2}))
          .to_vector<float>(),
      (std::vector<float>{3, -4}));
}

// Finite numbers as in numpy.floor_divide and numpy.remainder. What zeros and infinities give is in
// the array API standard (2024.12, floor_divide and remainder), which says that inf / 2 is inf and
// that 5 / -inf is -0.
TEST_F(Composites, FloorDivisionOfFloats) {
  using Floats = std::vector<double>;
  for (DType dtype : {DType::f32, DType::f64}) {
    auto numbers = [&](Floats values) {
      auto count = static_cast<std::int64_t>(values.size());
      return from_host(HostArray::from_vector(std::move(values), {count}).astype(dtype));
    };
    auto values = [](const Tensor& x) { return astype(x, DType::f64).to_vector<double>(); };
    auto signs = [](const Tensor& x) { return signbit(x).to_vector<bool>(); };
    using Bools = std::vector<bool>;
    Tensor a = numbers({5.5, -5.5, 5.5, -5.5, 6, 1, -1, INFINITY, INFINITY, -INFINITY});
    Tensor b = numbers({2, 2, -2, -2, 0.25, 0, 0, 2, -2, 2});
    EXPECT_EQ(values(floor_divide(a, b)),
              (Floats{2, -3, -3, 2, 24, INFINITY, -INFINITY, INFINITY, -INFINITY, -INFINITY}));
    Tensor none = floor_divide(numbers({0, NAN, 1, INFINITY}), numbers({0, 1, NAN, -INFINITY}));
    for (double value : values(none)) EXPECT_TRUE(std::isnan(value));
    Tensor zeros = floor_divide(numbers({0, -0.0, 0, 5, -5, 5, -5}),
                                numbers({3, 3, -3, INFINITY, -INFINITY, -INFINITY, INFINITY}));
    EXPECT_EQ(values(abs(zeros)), Floats(7, 0));
    EXPECT_EQ(signs(zeros), (Bools{false, true, true, false, false, true, true}));

    Tensor rests = remainder(numbers({6, -6, 6, -6, 0, -0.0}), numbers({3, 3, -3, -3, 2, 2}));
    EXPECT_EQ(values(abs(rests)), Floats(6, 0));
    EXPECT_EQ(signs(rests), (Bools{false, false, true, true, false, false}));
    EXPECT_EQ(values(remainder(numbers({5, -5, 5, -5}),
                               numbers({INFINITY, INFINITY, -INFINITY, -INFINITY}))),
              (Floats{5, INFINITY, -INFINITY, -5}));
    Tensor of_zeros = sign(numbers({0, -0.0}));
    EXPECT_EQ(signs(of_zeros), (Bools{false, false}));
    EXPECT_EQ(values(sign(numbers({-INFINITY, 2, -3}))), (Floats{-1, 1, -1}));
  }
}

// Same results as numpy.sign.
TEST_F(Composites, SignsOfComplexNumbers) {
  Tensor x = complex(from_host<float>({3, 0, -5}, {3}), from_host<float>({-4, 0, 0}, {3}));
  EXPECT_EQ(real(sign(x)).to_vector<float>(), (std::vector<float>{0.6f, 0, -1}));
  EXPECT_EQ(imag(sign(x)).to_vector<float>(), (std::vector<float>{-0.8f, 0, 0}));
}

// Same derivatives as JAX where the pieces of a function meet.
TEST_F(Composites, DerivativesOfActivationsAtKinks) {
  using Slopes = std::vector<double>;
  auto slopes = [](auto f, Slopes at) {
    auto size = static_cast<std::int64_t>(at.size());
    Tensor x = from_host(std::move(at), {size});
    return grad([&](Tensor t) { return sum(f(t)); })(x).template to_vector<double>();
  };
  EXPECT_EQ(slopes([](Tensor x) { return hard_tanh(x); }, {-2, -1, 0, 1, 2}),
            (Slopes{0, 1, 1, 1, 0}));
  EXPECT_EQ(slopes([](Tensor x) { return relu6(x); }, {-1, 0, 3, 6, 7}), (Slopes{0, 0, 1, 0, 0}));
  EXPECT_EQ(slopes([](Tensor x) { return leaky_relu(x, 0.25); }, {-1, 0, 1}), (Slopes{0.25, 1, 1}));
  // The branch that is not selected overflows, and must not affect the derivative.
  EXPECT_EQ(slopes([](Tensor x) { return elu(x); }, {0, 1000}), (Slopes{1, 1}));
  EXPECT_EQ(slopes([](Tensor x) { return log_sigmoid(x); }, {-1000, 0, 1000}), (Slopes{1, 0.5, 0}));
}

TEST_F(Composites, EinsumHasTheDerivativesOfItsProducts) {
  // A spec with a diagonal, an index that only one operand has, and three operands; the directional
  // derivative is compared with a difference.
  SampleSource source(test_seed());
  auto f = [](Tensor a, Tensor b, Tensor c) {
    return sum(square(einsum("iij,jk,kl->ik", {a, b, c})));
  };
  auto arrays = std::tuple(from_host(source.uniform(DType::f64, {3, 3, 2})),
                           from_host(source.uniform(DType::f64, {2, 4})),
                           from_host(source.uniform(DType::f64, {4, 2})));
  auto along = std::tuple(from_host(source.uniform(DType::f64, {3, 3, 2})),
                          from_host(source.uniform(DType::f64, {2, 4})),
                          from_host(source.uniform(DType::f64, {4, 2})));
  auto moved = [&](double by) {
    auto step = [&](const Tensor& x, const Tensor& v) { return x + v * by; };
    return f(step(std::get<0>(arrays), std::get<0>(along)),
             step(std::get<1>(arrays), std::get<1>(along)),
             step(std::get<2>(arrays), std::get<2>(along)))
        .item<double>();
  };
  double expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
  EXPECT_NEAR(jvp(f, arrays, along).second.item<double>(), expected,
              1e-6 * (1 + std::abs(expected)));
}

// Attention, its gradients and the norms give the same results on 2x4 devices as on one.
TEST_F(Composites, GiveTheSameOnShards) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  SampleSource source(test_seed());
  HostArray q = source.uniform(DType::f32, {2, 8, 8, 4}),
            k = source.uniform(DType::f32, {2, 8, 4, 4});
  HostArray scale = source.uniform(DType::f32, {4});
  auto f = [](Tensor query, Tensor key, Tensor gain) {
    Tensor positions = arange(8);
    Tensor turned = rotary_embedding(rms_norm(query, gain), positions);
    Tensor mixed = dot_product_attention(turned, rotary_embedding(key, positions), key,
                                         {.causal = true, .left_window = 3});
    return sum(square(group_norm(mixed, gain, gain, 2)));
  };
  auto both = jit(value_and_grad<0, 1, 2>(f));
  auto whole = both(from_host(q), from_host(k), from_host(scale));
  auto marked = [&](const HostArray& x) {
    return mark_sharding(from_host(x), mesh, P("data", none, "model", none));
  };
  auto sharded = both(marked(q), marked(k), from_host(scale));
  EXPECT_NEAR(whole.first.item<float>(), sharded.first.item<float>(),
              1e-4 * std::abs(whole.first.item<float>()));
  auto compare = [](const Tensor& a, const Tensor& b) {
    std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
    float largest = 0;
    for (float value : x) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5 * largest) << i;
  };
  compare(std::get<0>(whole.second), std::get<0>(sharded.second));
  compare(std::get<1>(whole.second), std::get<1>(sharded.second));
  compare(std::get<2>(whole.second), std::get<2>(sharded.second));
}

// Attention with split heads needs no collectives.
TEST_F(Composites, AttentionOverSplitHeadsMovesNothing) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  Sharding heads(mesh, P("data", none, "model", none));
  SampleSource source(test_seed());
  for (std::int64_t key_heads : {8, 4}) {
    std::vector<HostArray> inputs{source.uniform(DType::f32, {2, 8, 8, 4}),
                                  source.uniform(DType::f32, {2, 8, key_heads, 4}),
                                  source.uniform(DType::f32, {2, 8, key_heads, 4})};
    Graph graph = trace(
        inputs,
        [](std::span<const Tensor> x) {
          return std::vector{dot_product_attention(x[0], x[1], x[2], {.causal = true})};
        },
        std::vector(3, heads));
    EXPECT_TRUE(collectives(*compile(graph)).empty()) << key_heads << " key heads";
  }
}

TEST_F(Composites, DropoutIsTheSameOnEveryMesh) {
  Mesh mesh({{"x", 8}});
  Tensor key = random::key(5), x = ones({16, 8});
  std::vector<float> once = dropout(x, 0.5, key).to_vector<float>();
  Tensor rows = mark_sharding(ones({16, 8}), mesh, P("x", none));
  EXPECT_EQ(dropout(rows, 0.5, key).to_vector<float>(), once);
}

TEST_F(Composites, ForwardModeGoesThroughManualFunctions) {
  Mesh mesh({{"x", 4}});
  auto f = [](Tensor t) { return sin(t) * sum(t); };
  auto inside = manual(mesh, P("x"), P("x"), [](const Tensor& part) {
    auto of_part = [](Tensor t) { return sin(t) * all_reduce(sum(t), "x"); };
    return jvp(of_part, part, part).second;
  });
  auto around = manual(mesh, P("x"), P("x"),
                       [](const Tensor& part) { return sin(part) * all_reduce(sum(part), "x"); });
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6, 7, 8}, {8});
  std::vector<float> expected = jvp(f, x, x).second.to_vector<float>();
  std::vector<float> within = inside(x).to_vector<float>();
  std::vector<float> whole = jvp(around, x, x).second.to_vector<float>();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    float at = static_cast<float>(i + 1), slope = at * (36 * std::cos(at)) + 36 * std::sin(at);
    EXPECT_NEAR(expected[i], slope, 1e-3);
    EXPECT_NEAR(within[i], slope, 1e-3);
    EXPECT_NEAR(whole[i], slope, 1e-3);
  }
}

TEST_F(Composites, TangentsOverExplicitAxesLieAsTheirResults) {
  Mesh mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
  Tensor x = mark_sharding(ones({8, 16}), mesh, P("data", none));
  Tensor w = mark_sharding(ones({16, 32}), mesh, P(none, "model"));
  auto f = [](Tensor a, Tensor b) { return tanh(matmul(a, b)); };
  auto forward =
      jit([&](Tensor a, Tensor b) { return jvp(f, std::tuple(a, b), std::tuple(a, b)).second; });
  EXPECT_EQ(forward(x, w).sharding(), Sharding(mesh, P("data", "model")));
}

}  // namespace
}  // namespace meshard::conformance
