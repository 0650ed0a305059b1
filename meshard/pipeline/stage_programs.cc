// Tested in meshard/pipeline/pipeline_test.cc.
#include "meshard/pipeline/stage_programs.h"

#include <algorithm>
#include <set>

#include "meshard/autodiff/differentiate_body.h"
#include "meshard/base/cat.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/rolling/roll_layers.h"
#include "meshard/optim/gradients.h"
#include "meshard/optim/parameter_step.h"
#include "meshard/runtime/transfer.h"

namespace meshard::internal {
namespace {

std::vector<std::size_t> used_parameters(const Graph& graph) {
  std::set<const Node*> needed;
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands()) needed.insert(operand.node());
  for (const Value& result : graph.results()) needed.insert(result.node());
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < graph.parameters().size(); ++i)
    if (needed.contains(graph.parameters()[i].node())) used.push_back(i);
  return used;
}

bool has_gradient(const TensorType& type) {
  return is_floating(type.dtype) || is_complex(type.dtype);
}

// The same body with the results from `first` on before the others.
Body rotated(const Body& body, std::size_t first) {
  auto before = body.graph().results();
  std::vector<Value> results(before.begin(), before.end());
  std::rotate(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(first), results.end());
  return Body(body.graph().with_results(results));
}

void append_all(std::vector<Tensor>& to, const std::vector<Tensor>& tensors) {
  to.insert(to.end(), tensors.begin(), tensors.end());
}

}  // namespace

BodyProgram::BodyProgram(Body body, const BodyProgramOptions& options, SourceLocation where)
    : body_(std::move(body)), used_(used_parameters(body_.graph())) {
  if (options.first_parameter && !used_.empty() && used_.front() == 0) used_.erase(used_.begin());
  JitOptions jit_options{.name = options.name};
  jit_options.donate = {0};
  jit_.emplace(Run{body_, used_, options}, std::move(jit_options), where);
}

std::vector<Tensor> BodyProgram::operator()(const std::vector<Tensor>& accumulators,
                                            const std::vector<Tensor>& values) const {
  internal_check(values.size() == body_.num_parameters(), "a program got too few values");
  std::vector<Tensor> given;
  for (std::size_t i : used_) given.push_back(values[i]);
  return (*jit_)(accumulators, given);
}

std::vector<Tensor> BodyProgram::Run::operator()(const std::vector<Tensor>& accumulators,
                                                 const std::vector<Tensor>& values) const {
  std::vector<Tensor> all(body.num_parameters());
  if (options.first_parameter)
    all[0] = full(body.parameter(0).shape, *options.first_parameter, body.parameter(0).dtype);
  for (std::size_t i = 0; i < used.size(); ++i) all[used[i]] = values[i];
  std::vector<Tensor> results = inlined(body, all);
  for (std::size_t i = 0; i < options.accumulated; ++i) {
    results[i] = accumulators[i] + results[i];
    // In the sharding of the accumulator, so that the sum can take its memory.
    if (std::optional<Sharding> sharding = accumulators[i].sharding())
      results[i] = mark_sharding(results[i], *sharding);
  }
  return results;
}

void StagePrograms::check_arguments(const PipelineStage& stage, const AnyStructure* carry,
                                    const AnyStructure& batch) const {
  const StageFunction& function = stage.function();
  if (function.takes_carry() != (carry != nullptr))
    throw_invalid(stage.where(), "[pipeline] ", options_.name,
                  carry ? " is not the first one: its function takes (parameters, result of the "
                          "previous stage, batch)"
                        : " is the first one: its function takes (parameters, batch)");
  if (carry && !function.accepts_carry(*carry))
    throw_invalid(stage.where(), "[pipeline] the second argument of ", options_.name,
                  " has another C++ type than the result of the stage before");
  if (!function.accepts_batch(batch))
    throw_invalid(stage.where(), "[pipeline] the last argument of ", options_.name,
                  " has another C++ type than the microbatches");
}

void StagePrograms::check_loss(const PipelineStage& stage, const Body& body) const {
  bool is_loss =
      body.num_results() == 1 && body.result(0).rank() == 0 && is_floating(body.result(0).dtype);
  if (is_loss) return;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < body.num_results(); ++i) types.push_back(body.result(i));
  throw_invalid(stage.where(), "[pipeline] ", options_.name,
                " is the last one and returns the loss, a float of rank 0; it returns (",
                join(types, ", "), ")");
}

StagePrograms::StagePrograms(const PipelineStage& stage, const std::vector<Tensor>& parameters,
                             const AnyStructure* carry, const AnyStructure& batch,
                             const StageProgramOptions& options)
    : options_(options) {
  check_arguments(stage, carry, batch);
  const Body body = trace(stage, parameters, carry, batch);
  const std::size_t num_carry = carry ? carry->tensors.size() : 0;
  const BodyVjp vjp = differentiate(stage, body, parameters.size(), num_carry);
  const std::size_t num_inputs = parameters.size() + num_carry + batch.tensors.size();
  for (std::size_t r = 0; r < residuals_.size(); ++r) {
    const BodyVjp::Residual& one = residuals_[r];
    std::size_t index = one.index;
    if (!one.saved && (index < parameters.size() || index >= num_inputs)) continue;
    counted_residuals_.push_back(r);
    residual_bytes_ +=
        one.saved ? vjp.forward.result(index).bytes() : body.parameter(index).bytes();
  }
  make_programs(stage, vjp);
}

Body StagePrograms::trace(const PipelineStage& stage, const std::vector<Tensor>& parameters,
                          const AnyStructure* carry, const AnyStructure& batch) {
  std::size_t num_parameters = parameters.size(), num_carry = carry ? carry->tensors.size() : 0;
  std::vector<BodyInput> inputs;
  for (const Tensor& each : parameters) inputs.push_back(body_input(each));
  if (carry)
    for (const Tensor& each : carry->tensors) inputs.push_back({each.type(), std::nullopt, {}});
  for (const Tensor& each : batch.tensors) inputs.push_back({each.type(), std::nullopt, {}});
  auto function = [&](std::span<const Tensor> given) {
    RollingScope rolling;
    auto part = [&](std::size_t begin, std::size_t count) {
      auto tensors = given.subspan(begin, count);
      return std::vector<Tensor>(tensors.begin(), tensors.end());
    };
    AnyStructure own_carry;
    if (carry) own_carry = carry->with(part(num_parameters, num_carry));
    AnyStructure result =
        stage.function().call(given.first(num_parameters), carry ? &own_carry : nullptr,
                              batch.with(part(num_parameters + num_carry, batch.tensors.size())));
    result_ = result.with({});
    return rolling.rolled(std::move(result.tensors));
  };
  TracedBody traced = trace_body(inputs, function, std::nullopt, stage.where());
  if (options_.is_last) check_loss(stage, traced.body);
  for (const Tensor& each : traced.captured) {
    bool is_elsewhere = each.sharding() && !each.sharding()->mesh().same_devices(stage.mesh());
    captured_.push_back(
        is_elsewhere ? transfer(each, Sharding::replicated(stage.mesh(),
                                                           static_cast<std::size_t>(each.rank())))
                     : each);
  }
  return traced.body;
}

BodyVjp StagePrograms::differentiate(const PipelineStage& stage, const Body& body,
                                     std::size_t num_parameters, std::size_t num_carry) {
  std::vector<bool> has_cotangent, wanted(body.num_parameters(), false);
  for (std::size_t i = 0; i < body.num_results(); ++i) {
    result_types_.push_back(body.result(i));
    has_cotangent.push_back(has_gradient(body.result(i)));
    if (has_cotangent.back()) cotangents_.push_back(i);
  }
  std::vector<InBackward> back(body.num_parameters(), InBackward::kInvariant);
  for (std::size_t i = 0; i < num_parameters + num_carry; ++i) {
    wanted[i] = has_gradient(body.parameter(i));
    if (!wanted[i]) continue;
    if (i < num_parameters)
      parameter_gradients_.push_back(i);
    else
      carry_gradients_.push_back(i - num_parameters);
  }
  // What the function captures comes after its inputs.
  const std::size_t num_inputs = body.num_parameters() - captured_.size();
  for (std::size_t i = num_parameters; i < num_inputs; ++i) back[i] = InBackward::kAvailable;
  ResidualPolicy policy;
  if (stage.options().checkpoint) policy.keep = ResidualPolicy::Keep::kNothing;
  BodyVjp vjp =
      body_differentiator().differentiate(body, has_cotangent, wanted, back, policy, stage.where());
  residuals_ = vjp.residuals;
  backward_captured_ = vjp.captured;
  return vjp;
}

void StagePrograms::make_programs(const PipelineStage& stage, const BodyVjp& vjp) {
  std::optional<double> seed;
  if (options_.is_last) seed = options_.seed;
  std::size_t accumulated = parameter_gradients_.size();
  const auto named = [&](const char* part) { return cat(options_.name, " ", part); };
  forward_ = BodyProgram(vjp.forward, {.name = named("forward")}, stage.where());
  if (!options_.splits_gradients) {
    backward_ = BodyProgram(vjp.backward, {named("backward"), accumulated, seed}, stage.where());
    return;
  }
  SplitBody split =
      split_body(rotated(vjp.backward, accumulated), carry_gradients_.size(), stage.where());
  input_gradient_ = BodyProgram(split.first, {named("input gradient"), 0, seed}, stage.where());
  weight_gradient_ =
      BodyProgram(split.second, {named("weight gradient"), accumulated, seed}, stage.where());
}

std::vector<Tensor> StagePrograms::forward(const std::vector<Tensor>& parameters,
                                           const std::vector<Tensor>& carry,
                                           const std::vector<Tensor>& batch, Kept& kept,
                                           const Execute& execute) const {
  std::vector<Tensor> values = parameters;
  append_all(values, carry);
  append_all(values, batch);
  append_all(values, captured_);
  std::vector<Tensor> results = execute(forward_, {}, values);
  for (const BodyVjp::Residual& one : residuals_)
    kept.residuals.push_back(one.saved ? results[one.index] : values[one.index]);
  results.resize(result_types_.size());
  return results;
}

std::int64_t StagePrograms::bytes_of(const Kept& kept) const {
  std::int64_t bytes = kept.residuals.empty() ? 0 : residual_bytes_;
  for (const auto* tensors : {&kept.cotangents, &kept.handed_over})
    for (const Tensor& each : *tensors) bytes += each.type().bytes();
  return bytes;
}

std::vector<Tensor> StagePrograms::tensors_of(const Kept& kept) const {
  std::vector<Tensor> all;
  if (!kept.residuals.empty())
    for (std::size_t r : counted_residuals_) all.push_back(kept.residuals[r]);
  append_all(all, kept.cotangents);
  append_all(all, kept.handed_over);
  return all;
}

std::vector<Tensor> StagePrograms::backward_arguments(std::vector<Tensor> cotangents,
                                                      const Kept& kept) const {
  // The last stage's cotangent is a constant of its programs.
  if (options_.is_last) cotangents.assign(1, Tensor());
  append_all(cotangents, kept.residuals);
  append_all(cotangents, backward_captured_);
  return cotangents;
}

std::vector<Tensor> StagePrograms::backward(std::vector<Tensor>& accumulators,
                                            std::vector<Tensor> cotangents, Kept kept,
                                            const Execute& execute) const {
  std::vector<Tensor> results =
      execute(backward_, accumulators, backward_arguments(std::move(cotangents), kept));
  auto count = static_cast<std::ptrdiff_t>(accumulators.size());
  accumulators.assign(results.begin(), results.begin() + count);
  return {results.begin() + count, results.end()};
}

std::vector<Tensor> StagePrograms::input_gradient(std::vector<Tensor> cotangents, Kept& kept,
                                                  const Execute& execute) const {
  kept.cotangents = cotangents;
  if (input_gradient_.body().num_results() == 0) return {};
  std::vector<Tensor> results =
      execute(input_gradient_, {}, backward_arguments(std::move(cotangents), kept));
  auto count = static_cast<std::ptrdiff_t>(carry_gradients_.size());
  kept.handed_over.assign(results.begin() + count, results.end());
  results.resize(carry_gradients_.size());
  return results;
}

void StagePrograms::weight_gradient(std::vector<Tensor>& accumulators, Kept kept,
                                    const Execute& execute) const {
  std::vector<Tensor> values = backward_arguments(kept.cotangents, kept);
  append_all(values, kept.handed_over);
  accumulators = execute(weight_gradient_, accumulators, values);
}

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
    one.splits_gradients = std::ranges::any_of(order, [&](const auto& action) {
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
  auto found = std::ranges::find(leaves, leaf);
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
    return std::ranges::any_of(
        ties, [&](const Tie& tie) { return tie.stage == stage && tie.leaf == leaf; });
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
