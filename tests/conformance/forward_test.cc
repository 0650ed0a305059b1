// Compares every op in forward mode with central differences: its vjp, and the vjp of that with
// respect to the cotangent. This finds an op whose vjp uses an op without a derivative.
#include <cmath>
#include <map>

#include "meshard/autodiff/push_forward.h"
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

// f(x + step * direction), for the floating-point inputs.
HostArray stepped(CompiledProgram& program, std::vector<HostArray> inputs,
                  const std::vector<HostArray>& directions, double step) {
  std::size_t next = 0;
  for (HostArray& input : inputs) {
    if (input.dtype() != DType::f64) continue;
    std::vector<double> values = input.to_vector<double>();
    std::span<const double> along = directions[next++].data<double>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * along[i];
    input = HostArray::from_vector(std::move(values), input.shape());
  }
  return run(program, inputs)[0];
}

void check_tangent(const OpSample& sample, SampleSource& source) {
  std::vector<HostArray> directions, all = sample.inputs;
  for (const HostArray& input : sample.inputs)
    if (input.dtype() == DType::f64)
      directions.push_back(source.uniform(DType::f64, input.shape(), -1, 1));
  all.insert(all.end(), directions.begin(), directions.end());
  Graph forward = trace(all, [&](std::span<const Tensor> parameters) {
    std::span<const Tensor> inputs = parameters.first(sample.inputs.size());
    Tensor result = sample.call(inputs);
    std::vector<Tensor> floats;
    for (const Tensor& input : inputs)
      if (input.dtype() == DType::f64) floats.push_back(input);
    return PushForward({&result, 1}, floats, {})(parameters.subspan(inputs.size()), {});
  });
  HostArray tangent = run(*compile(forward), all)[0];
  auto program = compile(trace(sample.inputs, body_of(sample)));
  constexpr double kStep = 1e-6;
  HostArray up = stepped(*program, sample.inputs, directions, kStep);
  HostArray down = stepped(*program, sample.inputs, directions, -kStep);
  ASSERT_EQ(tangent.type(), up.type());
  std::span<const double> got = tangent.data<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    double expected = (up.data<double>()[i] - down.data<double>()[i]) / (2 * kStep);
    EXPECT_NEAR(got[i], expected,
                1e-6 * (1 + std::abs(expected)) + 1e-9 * std::abs(up.data<double>()[i]))
        << "element " << i;
  }
  tally("tangents compared with differences");
}

TEST_P(ForwardMode, IsTheLimitOfDifferences) {
  if (!op().vjp || not_differences().contains(op().name)) return;
  SampleSource source(test_seed() + 2);
  for (const OpSample& sample : samples()) {
    if (!differentiable(sample)) continue;
    SCOPED_TRACE("sample " + sample.name);
    check_tangent(sample, source);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ForwardMode, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
