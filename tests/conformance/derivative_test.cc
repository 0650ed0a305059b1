// Compares every op's vjp with central differences; both are computed on the plugin.
#include <cmath>
#include <map>

#include "meshard/autodiff/backward.h"
#include "meshard/ops/cast.h"
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

void expect_types_of_inputs(const std::vector<HostArray>& gradients, const OpSample& sample) {
  std::size_t next = 0;
  for (const HostArray& input : sample.inputs)
    if (input.dtype() == DType::f64) {
      EXPECT_EQ(gradients[next++].type(), input.type());
    }
}

// <cotangent, df(v)> by differences against <vjp(cotangent), v>, for a direction v.
void compare_along(const std::vector<HostArray>& gradients, const std::vector<HostArray>& direction,
                   const HostArray& cotangent, const HostArray& up, const HostArray& down) {
  double difference = (dot(cotangent, up) - dot(cotangent, down)) / (2 * kDifferenceStep);
  double from_vjp = 0, size = 1;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    from_vjp += dot(gradients[i], direction[i]);
    size += dot_of_sizes(gradients[i], direction[i]);
  }
  // The rounding error of f divided by the step, plus the contribution of the curvature.
  double allowed = 1e-7 * size + 1e-9 * dot_of_sizes(cotangent, up);
  EXPECT_NEAR(from_vjp, difference, allowed);
  tally("directional derivatives compared");
}

void check(const std::vector<const OpSample*>& samples, SampleSource& source) {
  std::vector<Part> parts, reverse_parts;
  for (const OpSample* sample : samples) {
    parts.push_back({"sample " + sample->name, sample->inputs, body_of(*sample)});
    TensorType type = trace(sample->inputs, body_of(*sample)).results()[0].type();
    ASSERT_EQ(type.dtype, DType::f64) << "sample " << sample->name << ": an f64 sample whose "
                                      << "result is not f64 sets check_vjp = false";
    std::vector<HostArray> inputs = sample->inputs;
    inputs.push_back(source.uniform(DType::f64, type.shape));
    reverse_parts.push_back(
        {"the gradient of sample " + sample->name, std::move(inputs), gradient_of(*sample)});
  }
  std::vector<HostArray> cotangents;
  for (const Part& part : reverse_parts) cotangents.push_back(part.inputs.back());
  Together forward(std::move(parts));
  std::vector<Together::Results> gradients = Together(std::move(reverse_parts)).run();
  for (std::size_t s = 0; s < samples.size(); ++s) {
    SCOPED_TRACE("sample " + samples[s]->name);
    expect_types_of_inputs(gradients[s], *samples[s]);
  }
  for (int probe = 0; probe < 3; ++probe) {
    std::vector<std::vector<HostArray>> directions(samples.size()), above, below;
    for (std::size_t s = 0; s < samples.size(); ++s) {
      for (const HostArray& gradient : gradients[s])
        directions[s].push_back(source.uniform(DType::f64, gradient.shape(), -1, 1));
      above.push_back(moved(samples[s]->inputs, directions[s], kDifferenceStep));
      below.push_back(moved(samples[s]->inputs, directions[s], -kDifferenceStep));
    }
    std::vector<Together::Results> up = forward.run(above), down = forward.run(below);
    for (std::size_t s = 0; s < samples.size(); ++s) {
      SCOPED_TRACE(cat("sample ", samples[s]->name, ", direction ", probe));
      compare_along(gradients[s], directions[s], cotangents[s], up[s][0], down[s][0]);
    }
  }
}

TEST_P(Derivative, IsTheLimitOfDifferences) {
  std::vector<OpSample> all = samples();
  bool floating_result = false, floating_input = false;
  std::vector<const OpSample*> checked;
  for (const OpSample& sample : all) {
    SCOPED_TRACE("sample " + sample.name);
    Graph graph = trace(sample.inputs, body_of(sample));
    floating_result |= is_floating(graph.results()[0].type().dtype);
    for (const HostArray& input : sample.inputs) floating_input |= is_floating(input.dtype());
    if (!op().vjp || !sample.check_vjp || !all_f64(sample)) continue;
    checked.push_back(&sample);
  }
  SampleSource source(test_seed() + 1);
  check(checked, source);
  if (!op().vjp) {
    EXPECT_TRUE(!floating_result || without_vjp().contains(op().name))
        << op().name << " has floating results, no vjp, and no reason listed in this file";
    tally("ops without derivative: results are not floats, or listed");
    return;
  }
  EXPECT_FALSE(without_vjp().contains(op().name)) << "listed as without vjp, but has one";
  if (by_definition().contains(op().name) || !floating_input) {
    EXPECT_TRUE(checked.empty()) << "listed as not checked, but has a sample to check";
    tally("ops without a float operand, or listed: differences not compared");
    return;
  }
  EXPECT_FALSE(checked.empty()) << op().name << " has a vjp and no f64 sample to check it";
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
