#include "meshard/meshard.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {
namespace {

Json make_mesh(Scope& scope, const Json& step) {
  Mesh mesh = mesh_of(step);
  for (std::int64_t id : mesh.device_ids()) (void)device_of(runtime_client(), id, {});
  scope.meshes.insert_or_assign(step.at("out"), std::move(mesh));
  return Json::object();
}

Json make_host(Scope& scope, const Json& step) {
  DType dtype = dtype_named(step.at("dtype").get<std::string>());
  HostArray data = host_array_of(step.at("data"), shape_of(step.at("shape")), dtype);
  scope.tensors[step.at("out")] = from_host(std::move(data));
  return Json::object();
}

Json make_full(Scope& scope, const Json& step) {
  double value = step.at("value");
  scope.tensors[step.at("out")] = full(shape_of(step.at("shape")), value, DType::f32);
  return Json::object();
}

Json make_arange(Scope& scope, const Json& step) {
  std::int64_t count = step.at("n");
  scope.tensors[step.at("out")] = arange(0, count, 1, DType::f32);
  return Json::object();
}

Json send_sharded(Scope& scope, const Json& step) {
  const Mesh& mesh = scope.mesh(step);
  PartitionSpec spec = spec_of(step.at("spec"), mesh);
  HostArray data = host_array_of(step.at("data"), shape_of(step.at("shape")), DType::f32);
  ShardingSpec sharding = step.value("minibatch", false) ? ShardingSpec::minibatch(mesh, spec)
                                                         : ShardingSpec(mesh, spec);
  Tensor sent = mark_sharding(from_host(data), sharding.sharding(data.shape()));
  scope.tensors[step.at("out")] = std::move(sent);
  return {{"can_apply", sharding.can_apply(static_cast<std::size_t>(data.rank()))}};
}

}  // namespace

const Steps& steps_that_make() {
  static const Steps steps = {{"mesh", make_mesh},
                              {"host", make_host},
                              {"full", make_full},
                              {"arange", make_arange},
                              {"send_sharded", send_sharded}};
  return steps;
}

}  // namespace meshard::conformance
