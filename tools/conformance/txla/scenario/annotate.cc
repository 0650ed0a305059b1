#include "meshard/meshard.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {
namespace {

/// If the step has `out`, it is also a name of the marked tensor.
Json mark(Scope& scope, const Json& step) {
  Tensor& tensor = scope.tensor(step);
  tensor = mark_sharding(tensor, scope.mesh(step), spec_of(step.at("spec"), scope.mesh(step)));
  if (step.contains("out")) scope.tensors[step.at("out")] = tensor;
  return Json::object();
}

/// The marked value is a new value; the operand does not change.
Json mark_with_gradients(Scope& scope, const Json& step) {
  const Mesh& mesh = scope.mesh(step);
  Tensor marked = mark_sharding(scope.tensor(step), mesh, spec_of(step.at("spec"), mesh));
  scope.tensors[step.at("out")] = std::move(marked);
  return Json::object();
}

Json annotate(Scope& scope, const Json& step) {
  Tensor& tensor = scope.tensor(step);
  tensor = sharding_constraint(tensor, scope.sharding(step));
  return Json::object();
}

Json clear(Scope& scope, const Json& step) {
  Tensor& tensor = scope.tensor(step);
  std::string placement = tensor.placement();
  tensor = clear_sharding(tensor);
  return {{"returns_same", tensor.placement() == placement}};
}

Json apply_spec(Scope& scope, const Json& step) {
  const Mesh& mesh = scope.mesh(step);
  Tensor& tensor = scope.tensor(step);
  tensor = mark_sharding(
      tensor, ShardingSpec(mesh, spec_of(step.at("spec"), mesh)).sharding(tensor.shape()));
  return Json::object();
}

/// `out` is each device's part of the tensor. A tensor that is not yet split is marked first, which
/// is also its state in the reference.
Json enter_manual(Scope& scope, const Json& step) {
  Tensor& tensor = scope.tensor(step);
  const Mesh& mesh = scope.mesh(step);
  PartitionSpec spec = spec_of(step.at("spec"), mesh);
  std::optional<Sharding> present = tensor.sharding();
  bool is_split = present && !present->is_fully_replicated();
  if (!is_split) tensor = mark_sharding(tensor, mesh, spec);
  Tensor local = enable_manual_sharding(tensor, mesh, spec);
  scope.tensors[step.at("out")] = local;
  return {{"shape", list_of(local.shape())}};
}

Json leave_manual(Scope& scope, const Json& step) {
  const Mesh& mesh = scope.mesh(step);
  Tensor full = disable_manual_sharding(scope.tensor(step), mesh, spec_of(step.at("spec"), mesh),
                                        shape_of(step.at("full_shape")));
  scope.tensors[step.at("out")] = full;
  return {{"shape", list_of(full.shape())}};
}

}  // namespace

const Steps& steps_that_annotate() {
  static const Steps steps = {{"mark", mark},
                              {"mark_with_gradients", mark_with_gradients},
                              {"annotate", annotate},
                              {"spec_apply", apply_spec},
                              {"manual_on", enter_manual},
                              {"manual_off", leave_manual},
                              {"clear", clear}};
  return steps;
}

}  // namespace meshard::conformance
