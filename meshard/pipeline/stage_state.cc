// Tested in meshard/pipeline/pipeline_test.cc.
#include "meshard/pipeline/stage_state.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/optim/clip.h"
#include "meshard/optim/parameter_step.h"
#include "meshard/runtime/transfer.h"

namespace meshard::internal {

bool is_on(const Tensor& value, const Mesh& mesh) {
  std::optional<Sharding> sharding = value.sharding();
  return sharding && sharding->mesh().same_devices(mesh);
}

Sharding like_sharding(const std::optional<Sharding>& sharding, const Mesh& mesh,
                       const Shape& shape) {
  std::vector<DimensionSpec> dimensions;
  for (int d = 0; d < shape.rank(); ++d) {
    AxisList axes;
    std::int64_t tiles = 1;
    auto dimension = static_cast<std::size_t>(d);
    if (sharding && dimension < sharding->rank())
      for (const AxisRef& axis : sharding->axes(dimension)) {
        if (!axis.is_whole() || !mesh.find_axis(axis.name)) break;
        tiles *= mesh.axis_size(AxisRef(axis.name));
        if (shape[d] % tiles != 0) break;
        axes.push_back(AxisRef(axis.name));
      }
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

Tensor placed(const Tensor& value, const Mesh& mesh) {
  if (is_on(value, mesh)) return value;
  Sharding there = like_sharding(value.sharding(), mesh, value.shape());
  return value.sharding() ? transfer(value, there) : mark_sharding(value, there);
}

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

std::vector<StageState> stage_states(std::vector<PipelineStage> stages,
                                     const PipelineSchedule& schedule) {
  std::vector<StageState> states;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    StageState& one = states.emplace_back(std::move(stages[s]));
    one.name = one.stage.options().name.empty() ? cat("stage ", s) : one.stage.options().name;
    const int number = static_cast<int>(s);
    const std::vector<PipelineAction>& order = schedule.order(schedule.worker_of(number));
    one.splits_gradients = std::any_of(order.begin(), order.end(), [&](const auto& action) {
      return action.stage == number && action.work == PipelineWork::kInputGradient;
    });
  }
  return states;
}

void trace_stages(std::span<StageState> stages, const AnyStructure& microbatch,
                  const PipelineSchedule& schedule) {
  AnyStructure carry;
  for (StageState& one : stages) {
    bool is_first = &one == &stages.front();
    StageProgramOptions options{.name = one.name,
                                .is_last = &one == &stages.back(),
                                .splits_gradients = one.splits_gradients,
                                .seed = 1.0 / static_cast<double>(schedule.microbatches())};
    one.programs.emplace(one.stage, one.parameters, is_first ? nullptr : &carry, microbatch,
                         options);
    carry = one.programs->result();
    for (const TensorType& type : one.programs->result_types())
      carry.tensors.push_back(abstract_tensor(type, std::nullopt));
  }
}

ZerosRun accumulators_of(const StageState& stage) {
  ZerosRun run;
  for (std::size_t i : stage.programs->parameter_gradients()) {
    const Tensor& parameter = stage.parameters[i];
    TensorType type = parameter.type();
    if (is_floating(type.dtype)) type.dtype = optim::internal::state_dtype(parameter);
    run.types.push_back(type);
    run.shardings.push_back(parameter.sharding());
  }
  return run;
}

Jit<ZerosRun> zeros_of(const StageState& stage) {
  return jit(accumulators_of(stage), {.name = cat(stage.name, " zeros")}, stage.stage.where());
}

Tensor* StageState::accumulator(std::size_t leaf) {
  const std::vector<std::size_t>& leaves = programs->parameter_gradients();
  auto found = std::find(leaves.begin(), leaves.end(), leaf);
  return found == leaves.end() ? nullptr
                               : &accumulators[static_cast<std::size_t>(found - leaves.begin())];
}

Tensor GradientNorm::Run::operator()(const std::vector<Tensor>& gradients) const {
  return square(optim::internal::norm_of(gradients));
}

GradientNorm::GradientNorm() : squares_(jit(Run{}, {.name = "squares of gradients"})) {}

std::vector<Tensor> GradientNorm::factor(std::span<const StageState> stages,
                                         std::span<const Tie> ties, double limit) const {
  if (limit == 0) return {};
  const auto is_tied = [&](std::size_t stage, std::size_t leaf) {
    return std::any_of(ties.begin(), ties.end(),
                       [&](const Tie& tie) { return tie.stage == stage && tie.leaf == leaf; });
  };
  Tensor total;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<Tensor> own;
    for (std::size_t i = 0; i < stages[s].accumulators.size(); ++i)
      if (!is_tied(s, stages[s].programs->parameter_gradients()[i]))
        own.push_back(stages[s].accumulators[i]);
    if (own.empty()) continue;
    Tensor squares = squares_(own);
    total = total.defined() ? total + squares : squares;
  }
  if (!total.defined()) return {};
  return {limit / maximum(sqrt(total), limit)};
}

void check_trainable(const StageState& stage) {
  if (stage.programs->parameter_gradients().size() != stage.parameters.size())
    throw_invalid(stage.stage.where(), "[pipeline] ", stage.name,
                  " has parameters that are not floats, which an optimizer cannot update");
}

UpdatedStage updated(StageState& stage, const PipelineOptimizer& optimizer,
                     const std::vector<Tensor>& factor) {
  if (stage.parameters.empty()) return {};
  if (!stage.update) {
    AnyStructure state = stage.stage.function().init(optimizer, stage.parameters);
    stage.update.emplace(UpdateRun{stage.stage.shared_function(), optimizer, state.with({})},
                         JitOptions{.name = cat(stage.name, " update"), .donate = {1}},
                         stage.stage.where());
    stage.optimizer_state = std::move(state);
  }
  auto [parameters, state] =
      (*stage.update)(stage.parameters, stage.accumulators, stage.optimizer_state.tensors, factor);
  stage.accumulators.clear();
  return {std::move(parameters), std::move(state)};
}

}  // namespace meshard::internal
