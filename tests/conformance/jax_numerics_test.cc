// Values and derivatives against JAX's (tests/golden/jax/README.md), computed on the plugin.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "meshard/autodiff/backward.h"
#include "tests/conformance/jax_programs.h"

namespace meshard::conformance {
namespace {

using JaxNumerics = OnDevices;

// What a result may be away from JAX's: four times JAX's own distance to float64, or four rounding
// errors of the largest value.
void compare(const HostArray& got, const HostArray& expected, double distance,
             const std::string& what) {
  double largest = 0;
  if (is_floating(expected.dtype()))
    for (double value : expected.astype(DType::f64).to_vector<double>())
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  double unit = std::max(largest * 0x1p-23, 0x1p-149);
  EXPECT_TRUE(close(got, expected, std::max(4.0, 4 * distance / unit))) << what;
}

double distance(const Json& test, const char* field, std::size_t i) {
  // Of integers none is recorded.
  return test.contains(field) && i < test.at(field).size() ? test.at(field).at(i).get<double>() : 0;
}

void check(const Json& test, const Body& body) {
  std::vector<HostArray> inputs = arrays_of_json(test, "inputs");
  std::vector<HostArray> outputs = arrays_of_json(test, "outputs");
  std::vector<HostArray> cotangents = arrays_of_json(test, "cotangents");
  std::vector<HostArray> gradients = arrays_of_json(test, "grads");
  std::vector<HostArray> arguments = inputs;
  arguments.insert(arguments.end(), cotangents.begin(), cotangents.end());
  Graph graph = trace(arguments, [&](std::span<const Tensor> parameters) {
    std::vector<Tensor> results = body(parameters.first(inputs.size()));
    if (gradients.empty()) return results;
    std::vector<Tensor> wanted;
    for (const Json& i : test.at("grad_inputs")) wanted.push_back(parameters[i.get<std::size_t>()]);
    std::vector<Tensor> back =
        backward(results, parameters.subspan(inputs.size()), wanted, SourceLocation::current());
    results.insert(results.end(), back.begin(), back.end());
    return results;
  });
  std::vector<HostArray> got = run(*compile(graph), arguments);
  ASSERT_EQ(got.size(), outputs.size() + gradients.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    compare(got[i], outputs[i], distance(test, "abs_diff_to_float64", i), cat("output ", i));
  for (std::size_t i = 0; i < gradients.size(); ++i)
    compare(got[outputs.size() + i], gradients[i], distance(test, "grad_abs_diff_to_float64", i),
            cat("gradient ", i));
  tally("values compared with JAX's", static_cast<int>(outputs.size()));
  tally("gradients compared with JAX's", static_cast<int>(gradients.size()));
}

TEST_F(JaxNumerics, AreMet) {
  Json golden = read_golden("numerics.json");
  int compared = 0;
  std::string skipped;
  for (const Json& test : golden.at("cases")) {
    const std::string id = test.at("id");
    SCOPED_TRACE(id + ": " + test.at("what").get<std::string>());
    std::optional<Body> body;
    if (!has_foreign_dtype(test)) body = jax_program(test);
    if (!body) {
      skipped += " " + id;
      tally("cases of numerics.json SKIPPED: no such op yet");
      continue;
    }
    try {
      check(test, *body);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    ++compared;
  }
  std::printf("not compared, for want of an op:%s\n", skipped.c_str());
  tally("cases of numerics.json compared", compared);
  EXPECT_GE(compared, 110);
}

}  // namespace
}  // namespace meshard::conformance
