// Compares every op in forward mode with central differences: its vjp, and the vjp of that with
// respect to the cotangent. This finds an op whose vjp uses an op without a derivative.
#include <cmath>
#include <map>

#include "meshard/autodiff/jvp.h"
#include "tests/conformance/conformance.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using ForwardMode = EachOp;

// Ops whose derivative deliberately differs from finite differences, and the reason for each.
const std::map<std::string_view, std::string_view>& not_differences() {
  static const std::map<std::string_view, std::string_view> reasons{
      {"astype", "between f64 and narrower floats small differences vanish"},
      {"stop_gradient", "it lets no tangent through, although it is the identity"},
  };
  return reasons;
}

bool differentiable(const OpSample& sample) {
  bool any = false;
  for (const HostArray& input : sample.inputs) {
    if (is_floating(input.dtype()) && input.dtype() != DType::f64) return false;
    any |= input.dtype() == DType::f64;
  }
  return any && sample.check_vjp;
}

// The tangent of the result. The tangents of the f64 inputs come after the inputs.
Body tangent_of(const OpSample& sample) {
  return [&sample](std::span<const Tensor> parameters) {
    std::span<const Tensor> inputs = parameters.first(sample.inputs.size());
    Tensor result = sample.call(inputs);
    std::vector<Tensor> floats;
    for (const Tensor& input : inputs)
      if (input.dtype() == DType::f64) floats.push_back(input);
    return PushForward({&result, 1}, floats, {})(parameters.subspan(inputs.size()), {});
  };
}

void compare_tangent(const HostArray& tangent, const HostArray& up, const HostArray& down) {
  ASSERT_EQ(tangent.type(), up.type());
  std::span<const double> got = tangent.data<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    double expected = (up.data<double>()[i] - down.data<double>()[i]) / (2 * kDifferenceStep);
    EXPECT_NEAR(got[i], expected,
                1e-6 * (1 + std::abs(expected)) + 1e-9 * std::abs(up.data<double>()[i]))
        << "element " << i;
  }
  tally("tangents compared with differences");
}

TEST_P(ForwardMode, IsTheLimitOfDifferences) {
  if (!op().vjp || not_differences().contains(op().name)) return;
  SampleSource source(test_seed() + 2);
  std::vector<OpSample> all = samples();
  std::erase_if(all, [](const OpSample& sample) { return !differentiable(sample); });
  std::vector<Part> parts, forward_parts;
  std::vector<Together::Inputs> above, below;
  for (const OpSample& sample : all) {
    std::vector<HostArray> directions, with_tangents = sample.inputs;
    for (const HostArray& input : sample.inputs)
      if (input.dtype() == DType::f64)
        directions.push_back(source.uniform(DType::f64, input.shape(), -1, 1));
    with_tangents.insert(with_tangents.end(), directions.begin(), directions.end());
    above.push_back(moved(sample.inputs, directions, kDifferenceStep));
    below.push_back(moved(sample.inputs, directions, -kDifferenceStep));
    parts.push_back({"sample " + sample.name, sample.inputs, body_of(sample)});
    forward_parts.push_back(
        {"the tangent of sample " + sample.name, std::move(with_tangents), tangent_of(sample)});
  }
  std::vector<Together::Results> tangents = Together(std::move(forward_parts)).run();
  Together functions(std::move(parts));
  std::vector<Together::Results> up = functions.run(above), down = functions.run(below);
  for (std::size_t s = 0; s < all.size(); ++s) {
    SCOPED_TRACE("sample " + all[s].name);
    compare_tangent(tangents[s][0], up[s][0], down[s][0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ForwardMode, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
