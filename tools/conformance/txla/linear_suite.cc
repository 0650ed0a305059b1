// linear.json: x W^T + b over the last dimension on devices: its values, and the requested
// gradients.
#include <cmath>
#include <numeric>

#include "meshard/meshard.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/inputs.h"

namespace meshard::conformance {
namespace linear_cases {

constexpr int kDevices = 8;

// The operand, with the case's placement.
Tensor operand(const Json& input, const char* name, const Shape& shape) {
  Tensor tensor = from_host(host_array_of(input.at(name), shape, DType::f32));
  const Json& sharding = input.at("sharding");
  if (sharding.is_null() || sharding.at(name).is_null()) return tensor;
  Json fields = sharding;
  std::vector<int> ids(sharding.at("num_devices").get<std::size_t>());
  std::iota(ids.begin(), ids.end(), 0);
  fields["device_ids"] = ids;
  Mesh mesh = mesh_of(fields);
  return mark_sharding(tensor, mesh, spec_of(sharding.at(name), mesh));
}

Json answer_to(const Json& input, const GoldenFile&) {
  std::int64_t in = input.at("in_features"), out = input.at("out_features");
  Tensor x = operand(input, "input", shape_of(input.at("input_shape")));
  Tensor weight = operand(input, "weight", {out, in});
  bool has_bias = !input.at("bias").is_null();
  Tensor bias = has_bias ? operand(input, "bias", {out}) : Tensor();

  internal::KeepOperandsScope keep;
  Tensor y = has_bias ? linear(x, weight, bias) : linear(x, weight);
  Tensor cotangent = from_host(host_array_of(input.at("grad_output"), y.shape(), DType::f32));
  std::vector<Tensor> wanted;
  for (auto [name, tensor] : {std::pair("input", x), {"weight", weight}, {"bias", bias}})
    if (input.at("needs_grad").at(name) == true) wanted.push_back(tensor);
  std::vector<Tensor> gradients;
  if (!wanted.empty())
    gradients = backward({&y, 1}, {&cotangent, 1}, wanted, SourceLocation::current());

  HostArray values = y.to_host();
  Json expect = {{"output_shape", y.shape().sizes()}, {"forward", numbers_of(values)}};
  std::size_t next = 0;
  for (const char* name : {"input", "weight", "bias"})
    expect[std::string("grad_") + name] =
        input.at("needs_grad").at(name) == true ? numbers_of(gradients[next++].to_host()) : Json();
  return {{"expect", expect}};
}

Verdict judge_case(const Json& test, const Json& answer) {
  const Json &ours = answer.at("expect"), &recorded = test.at("expect");
  if (ours.at("output_shape") != recorded.at("output_shape"))
    return Verdict::failed(cat("output_shape: ours ", ours.at("output_shape").dump()));
  double tolerance = recorded.at("atol");
  for (const char* field : {"forward", "grad_input", "grad_weight", "grad_bias"}) {
    const Json &mine = ours.at(field), &theirs = recorded.at(field);
    bool same = mine.is_null() == theirs.is_null() && mine.size() == theirs.size();
    for (std::size_t i = 0; same && i < mine.size(); ++i)
      same = std::abs(mine[i].get<double>() - theirs[i].get<double>()) <= tolerance;
    if (!same)
      return Verdict::failed(cat(field, ": ours ", mine.dump(), ", recorded ", theirs.dump()));
  }
  return {};
}

}  // namespace linear_cases

Suite linear_suite() {
  using namespace linear_cases;
  return {"linear.json", answer_to, judge_case, [](const Json&) { return kDevices; }};
}

}  // namespace meshard::conformance
