// numerics.json: values and vector-Jacobian products of ops and small networks, on one device.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/arrays.h"
#include "tools/conformance/jax/numerics/programs.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {
namespace numerics_cases {

Tensors tensors_of(const Json& list) {
  Tensors tensors;
  for (const HostArray& array : arrays_in_jax(list)) tensors.push_back(from_host(array));
  return tensors;
}

Json arrays_of(const Tensors& tensors) {
  Json list = Json::array();
  for (const Tensor& tensor : tensors) list.push_back(json_in_jax(tensor.to_host()));
  return list;
}

Json answer_to(const Json& test, const GoldenFile&) {
  std::optional<Program> program = numerics_program(test);
  if (!program) return {};
  internal::KeepOperandsScope keep;
  Tensors inputs = tensors_of(test.at("inputs"));
  Tensors results = (*program)(inputs);
  Tensors gradients;
  if (test.contains("grads")) {
    Tensors wanted, cotangents = tensors_of(test.at("cotangents"));
    for (std::size_t i : test.at("grad_inputs")) wanted.push_back(inputs.at(i));
    gradients = backward(results, cotangents, wanted, SourceLocation::current());
  }
  Tensors all = results;
  all.insert(all.end(), gradients.begin(), gradients.end());
  sync(all);
  Json answer = {{"outputs", arrays_of(results)}};
  if (test.contains("grads")) answer["grads"] = arrays_of(gradients);
  return answer;
}

// Four times JAX's own distance from float64, which is not recorded for integers.
double allowed_distance(const Json& test, const char* field, std::size_t i) {
  if (!test.contains(field) || i >= test.at(field).size()) return 0;
  const Json& distance = test.at(field).at(i);
  return distance.is_number() ? 4 * distance.get<double>() : 0;
}

Verdict judge_case(const Json& test, const Json& answer) {
  for (auto [field, distance] : {std::pair("outputs", "abs_diff_to_float64"),
                                 std::pair("grads", "grad_abs_diff_to_float64")}) {
    if (!test.contains(field)) continue;
    const Json &ours = answer.at(field), &recorded = test.at(field);
    if (ours.size() != recorded.size())
      return Verdict::failed(cat(field, ": ours ", ours.size(), ", recorded ", recorded.size()));
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      std::string different =
          array_difference(ours[i], recorded[i], allowed_distance(test, distance, i));
      if (!different.empty()) return Verdict::failed(cat(field, "[", i, "] ", different));
    }
  }
  return {};
}

}  // namespace numerics_cases

Suite numerics_suite() {
  using namespace numerics_cases;
  return {"numerics.json", answer_to, judge_case, [](const Json&) { return 1; }};
}

}  // namespace meshard::conformance
