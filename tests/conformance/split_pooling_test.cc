// Windows along dimensions that are split over devices, and derivatives of their extremes: the
// results must equal those on one device.
#include <functional>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using SplitPooling = OnPlugin;

struct WindowCase {
  std::int64_t size, window, stride, low, high;
  bool greatest, weighted;
};

// The extremes of the windows, and their derivative by x with ones or 1, 2, 3, ... as cotangents.
std::pair<std::vector<float>, std::vector<float>> extremes_and_derivative(
    const WindowCase& p, const Tensor& x, const std::function<Tensor(Tensor)>& place) {
  auto extremes = [&](const Tensor& t) {
    WindowOptions options{.strides = {1, p.stride}, .padding = {{0, 0}, {p.low, p.high}}};
    return p.greatest ? reduce_window_max(t, {1, p.window}, options)
                      : reduce_window_min(t, {1, p.window}, options);
  };
  auto [y, slope] = jit([&](const Tensor& t) {
    Tensor result = extremes(t);
    Tensor weights = reshape(arange(1, result.type().size() + 1, 1, DType::f32), result.shape());
    Tensor by_x = grad([&](const Tensor& operand) {
      Tensor placed = place(extremes(operand));
      return sum(p.weighted ? placed * weights : placed);
    })(t);
    return std::tuple(place(result), by_x);
  })(x);
  return {y.to_vector<float>(), slope.to_vector<float>()};
}

TEST_F(SplitPooling, ExtremesAndTheirDerivativesAreThoseOfOneDevice) {
  TestRandom random;
  for (int k = 0; k < 60; ++k) {
    WindowCase p{.size = random.between(2, 9),
                 .window = random.between(1, 3),
                 .stride = random.between(1, 3),
                 .low = random.between(0, 1),
                 .high = random.between(0, 1),
                 .greatest = random.between(0, 1) == 1,
                 .weighted = random.between(0, 1) == 1};
    if (p.size + p.low + p.high < p.window || p.low >= p.window || p.high >= p.window) continue;
    std::vector<float> values;
    // All values have the same sign, with ties: the value that a device uses for an element outside
    // the operand must not win.
    for (std::int64_t i = 0; i < 2 * p.size; ++i)
      values.push_back(static_cast<float>(random.between(0, 3)) * (p.greatest ? -1.f : 1.f));
    Tensor x = from_host(values, {2, p.size});
    std::int64_t devices = random.between(2, 4);
    Mesh mesh({{"y", random.between(1, 2)}, {"x", devices}});
    auto split = [&](const Tensor& t) { return mark_sharding(t, mesh, P(none, "x")); };
    auto expected = extremes_and_derivative(p, x, [](Tensor t) { return t; });
    std::string text =
        cat(p.size, " elements on ", devices, " devices, windows of ", p.window, " by ", p.stride,
            " from -", p.low, ", ", p.high, " beyond the end, ", p.greatest ? "greatest" : "least");
    EXPECT_EQ(extremes_and_derivative(p, split(x), split), expected) << text;
    EXPECT_EQ(extremes_and_derivative(p, split(x), [](Tensor t) { return t; }), expected)
        << text << ", open";
  }
}

}  // namespace
}  // namespace meshard::conformance
