// Tested in meshard/pipeline/pipeline_test.cc.
#include "meshard/pipeline/optimizer_step.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/ops/all.h"
#include "meshard/optim/clip.h"

namespace meshard::internal {

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
