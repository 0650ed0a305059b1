// Tested in meshard/pipeline/pipeline_test.cc.
#include "meshard/pipeline/stage_state.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/ops/all.h"
#include "meshard/optim/parameter_step.h"

namespace meshard::internal {

std::pair<std::vector<Tensor>, std::vector<Tensor>> UpdateRun::operator()(
    const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
    const std::vector<Tensor>& now, const std::vector<Tensor>& factor) const {
  std::vector<Tensor> scaled;
  for (const Tensor& each : gradients)
    scaled.push_back(factor.empty() ? each : astype(each * factor[0], each.dtype()));
  return function->update(optimizer, parameters, scaled, state.with(now));
}

std::vector<Tensor> ZerosRun::operator()() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Tensor made = zeros(types[i].shape, types[i].dtype);
    all.push_back(shardings[i] ? mark_sharding(made, *shardings[i]) : made);
  }
  return all;
}

Jit<ZerosRun> zeros_of(const StageState& stage) {
  ZerosRun run;
  for (std::size_t i : stage.programs->parameter_gradients()) {
    const Tensor& parameter = stage.parameters[i];
    TensorType type = parameter.type();
    if (is_floating(type.dtype)) type.dtype = optim::internal::state_dtype(parameter);
    run.types.push_back(type);
    run.shardings.push_back(parameter.sharding());
  }
  return jit(std::move(run), {.name = cat(stage.name, " zeros")}, stage.stage.where());
}

Tensor* StageState::accumulator(std::size_t leaf) {
  const std::vector<std::size_t>& leaves = programs->parameter_gradients();
  auto found = std::find(leaves.begin(), leaves.end(), leaf);
  return found == leaves.end() ? nullptr
                               : &accumulators[static_cast<std::size_t>(found - leaves.begin())];
}

}  // namespace meshard::internal
