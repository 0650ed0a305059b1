// Compares every op's vjp with central differences; both are computed on the plugin.
#include <cmath>
#include <map>

#include "meshard/autodiff/backward.h"
#include "meshard/ops/astype.h"
#include "tests/conformance/conformance.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using Derivative = EachOp;

// Ops with floating-point results and no vjp, and the reason for each.
const std::map<std::string_view, std::string_view>& without_vjp() {
  static const std::map<std::string_view, std::string_view> reasons{
      {"custom_call", "what it computes is not known here: custom_vjp says its derivative"},
      {"pure_callback", "a C++ function: custom_vjp says its derivative"},
      {"nextafter", "a step by one unit of rounding; JAX has none either"},
  };
  return reasons;
}

// Ops whose vjp deliberately differs from finite differences, and the reason for each.
const std::map<std::string_view, std::string_view>& by_definition() {
  static const std::map<std::string_view, std::string_view> reasons{
      {"astype", "between f64 and narrower floats small differences vanish; see below"},
      {"while_loop", "how often it runs is not known, so it has none, as in JAX; it says so"},
      {"bitcast_convert", "bits have no slope"},
      {"reduce_precision", "a step; its cotangents are rounded alike, as in JAX"},
      {"stop_gradient", "it lets no cotangent through, although it is the identity"},
  };
  return reasons;
}

bool all_f64(const OpSample& sample) {
  bool any = false;
  for (const HostArray& input : sample.inputs) {
    if (is_inexact(input.dtype()) && input.dtype() != DType::f64) return false;
    any |= input.dtype() == DType::f64;
  }
  return any;
}

double dot(const HostArray& a, const HostArray& b) {
  double sum = 0;
  std::span<const double> x = a.data<double>(), y = b.data<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

double dot_of_sizes(const HostArray& a, const HostArray& b) {
  double sum = 0;
  std::span<const double> x = a.data<double>(), y = b.data<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::abs(x[i] * y[i]);
  return sum;
}

// The f64 inputs, moved by `step` along `directions`.
std::vector<HostArray> moved(std::span<const HostArray> inputs,
                             const std::vector<HostArray>& directions, double step) {
  std::vector<HostArray> out(inputs.begin(), inputs.end());
  std::size_t next = 0;
  for (HostArray& input : out) {
    if (input.dtype() != DType::f64) continue;
    std::vector<double> values = input.to_vector<double>();
    std::span<const double> direction = directions[next++].data<double>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
    input = HostArray::from_vector(std::move(values), input.shape());
  }
  return out;
}

// Checks one sample: <cotangent, df(v)> by differences against <vjp(cotangent), v>, for a few
// directions v.
void check(const OpSample& sample, SampleSource& source) {
  Graph graph = trace(sample.inputs, body_of(sample));
  const TensorType& type = graph.results()[0].type();
  ASSERT_EQ(type.dtype, DType::f64)
      << "an f64 sample whose result is not f64 sets check_vjp = false";
  std::shared_ptr<CompiledProgram> program = compile(graph);

  std::vector<HostArray> with_cotangent = sample.inputs;
  with_cotangent.push_back(source.uniform(DType::f64, type.shape));
  const HostArray cotangent = with_cotangent.back();
  Graph reverse = trace(with_cotangent, [&](std::span<const Tensor> parameters) {
    std::span<const Tensor> inputs = parameters.first(parameters.size() - 1);
    Tensor result = sample.call(inputs);
    std::vector<Tensor> floats;
    for (const Tensor& input : inputs)
      if (input.dtype() == DType::f64) floats.push_back(input);
    return backward({&result, 1}, {&parameters.back(), 1}, floats, SourceLocation::current());
  });
  std::vector<HostArray> gradients = run(*compile(reverse), with_cotangent);
  std::size_t next = 0;
  for (const HostArray& input : sample.inputs)
    if (input.dtype() == DType::f64) {
      EXPECT_EQ(gradients[next++].type(), input.type());
    }

  constexpr double kStep = 1e-6;
  for (int probe = 0; probe < 3; ++probe) {
    std::vector<HostArray> directions;
    for (const HostArray& gradient : gradients)
      directions.push_back(source.uniform(DType::f64, gradient.shape(), -1, 1));
    HostArray up = run(*program, moved(sample.inputs, directions, kStep))[0];
    HostArray down = run(*program, moved(sample.inputs, directions, -kStep))[0];
    double difference = (dot(cotangent, up) - dot(cotangent, down)) / (2 * kStep);
    double from_vjp = 0, size = 1;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      from_vjp += dot(gradients[i], directions[i]);
      size += dot_of_sizes(gradients[i], directions[i]);
    }
    // The rounding error of f divided by the step, plus the contribution of the curvature.
    double allowed = 1e-7 * size + 1e-9 * dot_of_sizes(cotangent, up);
    EXPECT_NEAR(from_vjp, difference, allowed) << "direction " << probe;
    tally("directional derivatives compared");
  }
}

TEST_P(Derivative, IsTheLimitOfDifferences) {
  std::vector<OpSample> all = samples();
  bool floating_result = false, floating_input = false;
  int checked = 0;
  SampleSource source(test_seed() + 1);
  for (const OpSample& sample : all) {
    SCOPED_TRACE("sample " + sample.name);
    Graph graph = trace(sample.inputs, body_of(sample));
    floating_result |= is_floating(graph.results()[0].type().dtype);
    for (const HostArray& input : sample.inputs) floating_input |= is_floating(input.dtype());
    if (!op().vjp || !sample.check_vjp || !all_f64(sample)) continue;
    check(sample, source);
    ++checked;
  }
  if (!op().vjp) {
    EXPECT_TRUE(!floating_result || without_vjp().contains(op().name))
        << op().name << " has floating results, no vjp, and no reason listed in this file";
    tally("ops without derivative: results are not floats, or listed");
    return;
  }
  EXPECT_FALSE(without_vjp().contains(op().name)) << "listed as without vjp, but has one";
  if (by_definition().contains(op().name) || !floating_input) {
    EXPECT_EQ(checked, 0) << "listed as not checked, but has a sample to check";
    tally("ops without a float operand, or listed: differences not compared");
    return;
  }
  EXPECT_GT(checked, 0) << op().name << " has a vjp and no f64 sample to check it";
  tally("ops whose vjp was compared with differences");
}

// A conversion is linear, so its cotangents are converted back.
TEST_F(OnDevices, AstypeGivesTheCotangentInTheOperandsDtype) {
  HostArray x = HostArray::from_vector<float>({1, -2, 3});
  HostArray cotangent = HostArray::from_vector<double>({0.5, 0.25, -4});
  for (DType from : {DType::f64, DType::f32, DType::bf16})
    for (DType to : {DType::f64, DType::f32, DType::bf16}) {
      std::vector<HostArray> inputs{x.astype(from), cotangent.astype(to)};
      Graph graph = trace(inputs, [&](std::span<const Tensor> tensors) {
        Tensor result = astype(tensors[0], to);
        return backward({&result, 1}, {&tensors[1], 1}, tensors.first(1),
                        SourceLocation::current());
      });
      EXPECT_EQ(run(*compile(graph), inputs)[0], cotangent.astype(from))
          << to_string(from) << " to " << to_string(to);
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, Derivative, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
