#include "meshard/meshard.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/scope.h"
#include "tools/conformance/txla/scenario/state.h"

namespace meshard::conformance {
namespace {

/// Values with more elements are not recorded.
constexpr std::int64_t kMostValues = 64;

/// Computes all live tensors that are only recorded.
Json run_sync(Scope& scope, const Json&) {
  std::vector<Tensor> pending;
  for (const auto& [name, tensor] : scope.tensors)
    if (tensor.placement() == "recorded") pending.push_back(tensor);
  sync(pending);
  return Json::object();
}

Json run_read(Scope& scope, const Json& step) {
  HostArray array = scope.tensor(step).to_host();
  if (array.size() > kMostValues) return Json::object();
  return {{"values", numbers_of(array)}};
}

Json run_shards(Scope& scope, const Json& step) {
  return {{"shards", shards_of(scope.tensor(step))}};
}

}  // namespace

const Steps& steps_that_read() {
  static const Steps steps = {{"sync", run_sync}, {"read", run_read}, {"shards", run_shards}};
  return steps;
}

}  // namespace meshard::conformance
