// Ops along dimensions that are split over devices, where XLA's partitioner or an all-reduce by
// itself would be wrong: the results must equal those on one device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using SplitDimensions = OnPlugin;

Mesh eight_devices() { return Mesh({{"data", 2}, {"model", 4}}); }

// Includes more devices than elements, and pads that remove all elements of the operand.
TEST_F(SplitDimensions, EdgesThatCutAndShift) {
  const Mesh three({{"x", 3}}, {0, 1, 2});
  for (std::int64_t size : {1, 2, 4})
    for (std::int64_t low : {-2, -1, 0, 1, 2})
      for (std::int64_t high : {-2, -1, 1}) {
        if (size + low + high <= 0) continue;
        std::vector<float> from, expected;
        for (std::int64_t i = 0; i < size; ++i) from.push_back(static_cast<float>(i + 1));
        for (std::int64_t i = -low; i < size + high; ++i)
          expected.push_back(i >= 0 && i < size ? from[static_cast<std::size_t>(i)] : -1.f);
        Tensor x = from_host(from, {size}), split = mark_sharding(x, three, P("x"));
        for (const Tensor& each : {x, split})
          EXPECT_EQ(mark_sharding(pad(each, -1, {low}, {high}), three, P("x")).to_vector<float>(),
                    expected)
              << size << " " << low << " " << high;
      }
  Tensor pair = from_host<float>({1, 2}, {2, 1});
  Tensor running = mark_sharding(cumulative_sum(pair, 0), three, P("x"));
  EXPECT_EQ(running.to_vector<float>(), (std::vector<float>{1, 3}));
}

TEST_F(SplitDimensions, SlicesThatKeepOnlyPadding) {
  Mesh mesh({{"x", 4}});
  for (std::int64_t n : {3, 4, 8}) {
    Tensor x = reshape(arange(0, 5 * n, 1, DType::f32), {5, n});
    auto beside = [n](const Tensor& t) {
      return slice(pad(t, 1, {0, 0}, {0, 2}), {0, n + 1}, {5, n + 2});
    };
    auto by_x = grad([&](const Tensor& t) { return sum(square(beside(t))); });
    Tensor split = mark_sharding(x, mesh, P(none, "x"));
    EXPECT_EQ(jit(beside)(split).to_vector<float>(), std::vector<float>(5, 1)) << n;
    EXPECT_EQ(jit(by_x)(split).to_vector<float>(),
              std::vector<float>(static_cast<std::size_t>(5 * n), 0))
        << n;
  }
}

TEST_F(SplitDimensions, GapsOfUnevenDimensions) {
  const Mesh two({{"x", 2}}, {0, 1});
  Tensor x = from_host<float>({5, 6, 1}, {3});
  Tensor y = mark_sharding(pad(x, 1, {0}, {0}, {1}), two, P("x"));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{5, 1, 6, 1, 1}));
}

// The window is clamped to the operand, so its start may be before the first element.
TEST_F(SplitDimensions, WindowsThatBeginOutside) {
  const Mesh two({{"x", 2}}, {0, 1});
  Tensor x = mark_sharding(from_host<float>({3, 4, 5, 6}, {4}), two, P("x"));
  for (std::int32_t start : {-4, -1, 0, 2, 3, 9}) {
    Tensor at = from_host<std::int32_t>({start}, {});
    auto inside = static_cast<std::size_t>(std::clamp(start, 0, 2));
    std::vector<float> expected(4, 0), whole{3, 4, 5, 6}, updated = whole;
    auto window = [&](const Tensor& t) { return dynamic_slice(t, {at}, {2}); };
    EXPECT_EQ(window(x).to_vector<float>(), (std::vector<float>{whole[inside], whole[inside + 1]}));
    for (std::size_t i : {inside, inside + 1}) expected[i] = 1, updated[i] = -1;
    EXPECT_EQ(grad([&](const Tensor& t) { return sum(window(t)); })(x).to_vector<float>(), expected)
        << start;
    Tensor update = from_host<float>({-1, -1}, {2});
    EXPECT_EQ(dynamic_update_slice(x, update, {at}).to_vector<float>(), updated) << start;
  }
}

TEST_F(SplitDimensions, FewIndices) {
  const Mesh mesh({{"s", 2}, {"x", 2}}, {0, 1, 2, 3});
  Tensor rows = from_host<float>({-3, -4, 0, 2, 4, -3, 1, 5, 7, 6, 8, 9}, {1, 2, 6});
  Tensor x = mark_sharding(rows, mesh, P(none, none, "s"));
  for (std::int64_t count : {1, 2, 3, 5}) {
    Tensor which =
        from_host(std::vector<std::int32_t>(static_cast<std::size_t>(count), 1), {count});
    Tensor split = mark_sharding(which, mesh, P("s"));
    EXPECT_EQ(mark_sharding(take(x, split, 1), mesh, P("x")).to_vector<float>(),
              take(rows, which, 1).to_vector<float>())
        << count;
  }
}

TEST_F(SplitDimensions, MaxAndMinKeepNan) {
  PartitionSpec all = P({"data", "model"});
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (std::int64_t place : {0, 5, 15}) {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < 16; ++i) numbers.push_back(static_cast<double>(i * 7 % 16) - 8);
      numbers[static_cast<std::size_t>(place)] = NAN;
      Tensor x = mark_sharding(from_host(HostArray::from_vector(numbers).astype(dtype)),
                               eight_devices(), all);
      for (const Tensor& extreme : {max(x), min(x), vector_norm(x, {}, false, INFINITY)})
        EXPECT_TRUE(std::isnan(astype(extreme, DType::f64).item<double>()))
            << to_string(dtype) << " " << place;
      EXPECT_EQ(argmax(x).item<std::int32_t>(), place);
      EXPECT_EQ(argmin(x).item<std::int32_t>(), place);
    }
}

TEST_F(SplitDimensions, MaxAndMinOfNumbersAreExact) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> rows{
      {-1, -2, -3, -4, -5, -6, -7, -8},
      {0, -0.0, 0, -0.0, 0, 0, 0, 0},
      {-infinity, 1, 2, 3, 4, 5, 6, infinity},
      {-infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity, -infinity},
      {0.1, -0.1, 1e-30, -1e-30, 65504, -65504, 3, 4}};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32})
    for (const std::vector<double>& row : rows) {
      if (dtype == DType::i32 && !std::isfinite(row[0])) continue;
      HostArray numbers = HostArray::from_vector(row).astype(dtype);
      Tensor x = mark_sharding(from_host(numbers), eight_devices(), P({"model", "data"}));
      std::vector<double> rounded = numbers.astype(DType::f64).to_vector<double>();
      EXPECT_EQ(astype(max(x), DType::f64).item<double>(),
                *std::max_element(rounded.begin(), rounded.end()));
      EXPECT_EQ(astype(min(x), DType::f64).item<double>(),
                *std::min_element(rounded.begin(), rounded.end()));
    }
}

TEST_F(SplitDimensions, ExtremesOfGroupsAndLocalValuesKeepNan) {
  Tensor x = mark_sharding(from_host<float>({3, 1, 4, 1, NAN, 9, 2, 6}, {8}), eight_devices(),
                           P({"data", "model"}));
  Tensor groups = from_host<std::int32_t>({0, 0, 0, 1, 1, 1, 0, 0}, {8});
  for (auto of_groups : {segment_max, segment_min}) {
    std::vector<float> got = of_groups(x, groups, 2).to_vector<float>();
    EXPECT_EQ(got[0], of_groups == segment_max ? 6 : 1);
    EXPECT_TRUE(std::isnan(got[1]));
  }
  for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    Tensor local = manual(eight_devices(), P({"data", "model"}), P(), [kind](const Tensor& t) {
      return all_reduce(t, {"data", "model"}, kind);
    })(x);
    EXPECT_TRUE(std::isnan(local.to_vector<float>()[0]));
  }
}

// Compares losses and gradients of a convolution with the given operand and result shardings.
struct ConvolutionCase {
  Shape input, kernel;
  ConvolutionOptions options;
  PartitionSpec input_spec, kernel_spec, result_spec;
};

std::vector<std::vector<double>> run_case(const ConvolutionCase& c, bool split) {
  TestRandom random;
  auto numbers = [&](const Shape& shape) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.size(); ++i)
      values.push_back(static_cast<double>(random.between(-1000, 1000)) / 1000);
    return from_host(HostArray::from_vector(std::move(values), shape));
  };
  auto lay_out = [&](const Tensor& x, const PartitionSpec& spec) {
    return split ? mark_sharding(x, eight_devices(), spec) : x;
  };
  Tensor x = lay_out(numbers(c.input), c.input_spec), w = lay_out(numbers(c.kernel), c.kernel_spec);
  auto loss = [&](const Tensor& a, const Tensor& b) {
    Tensor y = lay_out(convolution(a, b, c.options), c.result_spec);
    return sum(y * sin(y));
  };
  auto all = jit([&](const Tensor& a, const Tensor& b) {
    return std::tuple(convolution(a, b, c.options),
                      grad([&](const Tensor& t) { return loss(t, b); })(a),
                      lay_out(grad([&](const Tensor& t) { return loss(a, t); })(b), c.kernel_spec));
  });
  auto [y, input_slope, kernel_slope] = all(x, w);
  return {y.to_vector<double>(), input_slope.to_vector<double>(), kernel_slope.to_vector<double>()};
}

TEST_F(SplitDimensions, ConvolutionsAreThoseOfOneDevice) {
  const std::vector<ConvolutionCase> cases{
      // Dilated inputs, with kernels, inputs and results split along a spatial dimension.
      {{4, 5, 5, 2}, {2, 2, 2, 3}, {.input_dilation = {2, 2}}, P("data"), P("data"), P("data")},
      {{2, 8, 2},
       {4, 2, 3},
       {.input_dilation = {2}},
       P(none, "model"),
       P("model"),
       P(none, "model")},
      {{3, 8, 1},
       {5, 1, 3},
       {.strides = {2}, .padding = {{2, 2}}, .input_dilation = {2}},
       P(),
       P("data"),
       P(none, "model")},
      // Kernels split along a spatial dimension, evenly and unevenly.
      {{3, 6, 1},
       {3, 1, 1},
       {.strides = {3}, .kernel_dilation = {2}},
       P(none, "data"),
       P("data"),
       P(none, "data")},
      {{4, 8, 3},
       {3, 3, 3},
       {.strides = {2}, .padding = {{1, 0}}},
       P("model"),
       P("data"),
       P("model", none, "data")},
      // Strides over an uneven dimension.
      {{3, 5, 2},
       {3, 2, 2},
       {.strides = {3}, .padding = {{1, 2}}},
       P(none, "data"),
       P(),
       P(none, "data")},
      // Spatial dimensions split along one axis, kernel features along the other.
      {{2, 5, 1}, {1, 1, 1}, {.padding = {{1, 0}}}, P(none, "data"), P(none, none, "model"), P()},
      {{2, 8, 4}, {3, 4, 4}, {}, P(none, "data"), P(none, "model"), P(none, "data")},
      {{4, 8, 2}, {3, 2, 4}, {}, P("data"), P(none, none, "model"), P(none, "data", "model")},
      {{4, 8, 6, 2},
       {3, 3, 2, 8},
       {.padding = {{1, 1}, {1, 1}}},
       P("data", none, "model"),
       P(none, none, none, "model"),
       P("data", none, none, "model")},
      // Feature groups that are split across devices.
      {{1, 10, 2},
       {1, 1, 6},
       {.strides = {2}, .padding = {{0, 1}}, .kernel_dilation = {2}, .feature_groups = 2},
       P("data"),
       P("model", none, "data"),
       P(none, none, "model")},
      {{2, 4, 2},
       {4, 1, 2},
       {.padding = {{2, 1}}, .feature_groups = 2},
       P(),
       P(none, "data"),
       P(none, none, "data")},
      {{4, 6, 8},
       {3, 4, 8},
       {.feature_groups = 2},
       P("data", none, "model"),
       P(none, none, "model"),
       P("data", none, "model")},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto whole = run_case(cases[i], false), split = run_case(cases[i], true);
    for (std::size_t what = 0; what < 3; ++what)
      for (std::size_t k = 0; k < whole[what].size(); ++k)
        ASSERT_NEAR(split[what][k], whole[what][k], 1e-9) << "case " << i << ", part " << what;
  }
}

// jax.lax.conv_transpose's own derivative is wrong here.
TEST_F(SplitDimensions, TransposedConvolutionsLearnOnSplitKernels) {
  auto varied = [](Shape shape) {
    return reshape(sin(astype(arange(shape.size()), DType::f64)), shape);
  };
  Tensor x = varied({4, 5, 5, 2}), w = varied({2, 2, 2, 3});
  auto slope = jit([&](const Tensor& kernel) {
    auto loss = [&](const Tensor& t) {
      return sum(square(conv_transpose(x, t, {.strides = {2, 2}})));
    };
    return grad(loss)(kernel);
  });
  std::vector<double> want = slope(w).to_vector<double>();
  std::vector<double> got = slope(mark_sharding(w, eight_devices(), P("data"))).to_vector<double>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9) << i;
}

TEST_F(SplitDimensions, TransformsChangeTheLengthOfASplitDimension) {
  std::vector<float> numbers;
  for (int i = 0; i < 32; ++i) numbers.push_back(static_cast<float>(i * 7 % 16));
  Tensor x = from_host(numbers, {4, 8});
  for (std::int64_t length : {5, 8, 12})
    for (std::int64_t dimension : {0, 1}) {
      auto all = jit([=](const Tensor& t) {
        return std::tuple(abs(fft(t, length, dimension)), abs(rfft(t, length, dimension)),
                          irfft(complex(t, t), length, dimension));
      });
      auto [a, b, c] = all(x);
      auto [d, e, f] = all(mark_sharding(x, eight_devices(), P("data", "model")));
      for (auto [whole, split] : {std::pair(a, d), std::pair(b, e), std::pair(c, f)}) {
        std::vector<float> want = whole.to_vector<float>(), got = split.to_vector<float>();
        for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << length;
      }
    }
}

}  // namespace
}  // namespace meshard::conformance
