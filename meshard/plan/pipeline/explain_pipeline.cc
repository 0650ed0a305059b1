#include "meshard/plan/pipeline/explain_pipeline.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/pipeline/stage_programs.h"
#include "meshard/plan/pipeline/internal/stage_compiler.h"
#include "meshard/plan/plan.h"

namespace meshard::internal {
namespace {

// The same tensors without values, as the stage's devices have them.
Tensor abstract_on(const Tensor& value, const Mesh& mesh) {
  if (is_on(value, mesh)) return abstract_tensor(value.type(), value.sharding());
  return abstract_tensor(value.type(), like_sharding(value.sharding(), mesh, value.shape()));
}

class PipelineExplainer {
 public:
  PipelineExplainer(const Target& target, const std::vector<PipelineStage>& stages,
                    const PipelineSchedule& schedule, const ExplainPipelineOptions& options,
                    StageCompiler& compiler, SourceLocation where)
      : target_(target),
        schedule_(schedule),
        options_(options),
        compiler_(compiler),
        where_(where),
        parts_{.target = target.name(), .schedule = schedule} {
    if (static_cast<int>(stages.size()) != schedule.stages())
      throw_invalid(where, "[explain] ", stages.size(), " stages for a schedule of ",
                    schedule.stages());
    if (options.times.size() > 1 && options.times.size() != stages.size())
      throw_invalid(where, "[explain] ", options.times.size(), " times for ", stages.size(),
                    " stages");
    stages_ = stage_states(stages, schedule);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      StageState& one = stages_[s];
      for (const Tensor& each : one.stage.parameters().tensors) {
        if (!each.defined())
          throw_invalid(one.stage.where(), "[explain] a parameter of ", one.name, " has no value");
        one.parameters.push_back(abstract_on(each, one.stage.mesh()));
      }
      parts_.stages.push_back({.name = one.name,
                               .worker = schedule.worker_of(static_cast<int>(s)),
                               .mesh = one.stage.mesh()});
    }
    needs_.resize(stages.size());
    parts_.times_known = !options.times.empty() || hardware_figures(target.topology()).has_value();
  }

  PipelineReport report(const AnyStructure& microbatch) {
    int before = compiler_.compiled();
    trace(microbatch);
    for (std::size_t s = 0; s < stages_.size(); ++s) forward(s, microbatch);
    for (std::size_t s = stages_.size(); s-- > 0;) backward(s);
    for (std::size_t s = 0; s < stages_.size(); ++s) update(s);
    parts_.compiled = compiler_.compiled() - before;
    set_times();
    set_memory();
    if (!parts_.times_known)
      parts_.notes.push_back(cat("the figures of ", parts_.target,
                                 " are unknown: times are counts of operations, and transfers take "
                                 "no time"));
    return PipelineReport(std::move(parts_));
  }

 private:
  void trace(const AnyStructure& microbatch) {
    trace_stages(stages_, microbatch, schedule_);
    for (StageState& one : stages_) {
      ZerosRun accumulators = accumulators_of(one);
      for (std::size_t i = 0; i < accumulators.types.size(); ++i)
        one.accumulators.push_back(
            abstract_tensor(accumulators.types[i], accumulators.shardings[i]));
    }
    carry_.resize(stages_.size());
    kept_.resize(stages_.size());
    cotangents_.resize(stages_.size());
  }

  // Compiles in place of running, and adds a program to the stage's report.
  StagePrograms::Execute compiles(std::size_t s, PipelineWork work) {
    return [this, s, work](const BodyProgram& program, const std::vector<Tensor>& accumulators,
                           const std::vector<Tensor>& values) {
      const StageState& one = stages_[s];
      CompiledStageProgram made = program.with_call(
          accumulators, values,
          [&](const auto& jitted, const auto& sums, const std::vector<Tensor>& given) {
            return compiler_.compile(jitted, one.stage.mesh(), one.stage.where(), sums, given);
          });
      add_program(s, work, made.report);
      return made.results;
    };
  }

  void add_program(std::size_t s, PipelineWork work, std::shared_ptr<const ProgramReport> report) {
    PipelineStageReport& to = parts_.stages[s];
    const ProgramReport::Parts& parts = report->parts();
    double time = parts.cost.total_flops();
    if (hardware_figures(target_.topology()))
      time = parts.schedule ? parts.schedule->seconds
                            : (parts.roofline ? parts.roofline->seconds() : 0);
    if (!parts.out_of_memory.empty() && to.out_of_memory.empty())
      to.out_of_memory = parts.out_of_memory;
    to.programs.push_back({work, time, std::move(report)});
  }

  // What a program needs besides the values that are counted elsewhere.
  void add_need(std::size_t s, std::int64_t received, std::int64_t counted_results) {
    const std::optional<MemoryUse>& memory = parts_.stages[s].programs.back().report->memory();
    if (!memory) return;
    std::int64_t results =
        std::max<std::int64_t>(memory->outputs - memory->aliased - counted_results, 0);
    needs_[s].program =
        std::max(needs_[s].program, memory->temporaries + memory->code + results + received);
  }

  void forward(std::size_t s, const AnyStructure& microbatch) {
    StageState& one = stages_[s];
    const Mesh& mesh = one.stage.mesh();
    bool is_placed = !one.parameters.empty() || s > 0;  // as the pipeline does it
    std::vector<Tensor> batch;
    for (const Tensor& each : microbatch.tensors)
      batch.push_back(is_placed && !each.sharding() ? abstract_tensor(each.type(), std::nullopt)
                                                    : abstract_on(each, mesh));
    std::vector<Tensor> outputs = one.programs->forward(one.parameters, carry_[s], batch, kept_[s],
                                                        compiles(s, PipelineWork::kForward));
    std::vector<Tensor> kept = one.programs->tensors_of(kept_[s]);
    needs_[s].after_forward = device_bytes(kept);
    std::int64_t received = device_bytes(carry_[s]);
    needs_[s].received_forward = received;
    add_need(s, received, needs_[s].after_forward);
    if (s + 1 == stages_.size()) return;
    const Mesh& next = stages_[s + 1].stage.mesh();
    PipelineTransfer transfer{.from = static_cast<int>(s), .to = static_cast<int>(s) + 1};
    for (const Tensor& each : outputs) {
      Sharding to = like_sharding(each.sharding(), next, each.shape());
      one.destinations.push_back({each.sharding(), to});
      carry_[s + 1].push_back(sent(each, next, to, transfer));
    }
    parts_.transfers.push_back(transfer);
  }

  void backward(std::size_t s) {
    StageState& one = stages_[s];
    needs_[s].received_backward = device_bytes(cotangents_[s]);
    std::vector<Tensor> gradients;
    if (!one.splits_gradients) {
      gradients = one.programs->backward(one.accumulators, cotangents_[s], kept_[s],
                                         compiles(s, PipelineWork::kBackward));
      if (!parts_.stages[s].programs.empty()) add_need(s, needs_[s].received_backward, 0);
    } else {
      std::size_t programs = parts_.stages[s].programs.size();
      gradients = one.programs->input_gradient(cotangents_[s], kept_[s],
                                               compiles(s, PipelineWork::kInputGradient));
      needs_[s].after_input_gradient = device_bytes(one.programs->tensors_of(kept_[s]));
      if (parts_.stages[s].programs.size() > programs)
        add_need(s, needs_[s].received_backward,
                 needs_[s].after_input_gradient - needs_[s].after_forward);
      one.programs->weight_gradient(one.accumulators, kept_[s],
                                    compiles(s, PipelineWork::kWeightGradient));
      add_need(s, 0, 0);
    }
    if (s == 0) return;
    PipelineTransfer transfer{.from = static_cast<int>(s), .to = static_cast<int>(s) - 1};
    const std::vector<std::size_t>& positions = one.programs->carry_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i)
      cotangents_[s - 1].push_back(sent(gradients[i], stages_[s - 1].stage.mesh(),
                                        *stages_[s - 1].destinations[positions[i]].from, transfer));
    parts_.transfers.push_back(transfer);
  }

  // The value on the next devices; adds its bytes to the transfer.
  Tensor sent(const Tensor& value, const Mesh& to, const Sharding& sharding,
              PipelineTransfer& transfer) const {
    if (is_on(value, to)) return value;
    const Mesh& from = value.sharding()->mesh();
    transfer.bytes += value.type().bytes();
    StageLink link(target_, from, to, options_.links);
    std::int64_t bytes = link.device_bytes(device_bytes({abstract_tensor(value.type(), sharding)}));
    transfer.device_bytes += bytes;
    transfer.time += link.seconds(bytes);
    return abstract_tensor(value.type(), sharding);
  }

  void update(std::size_t s) {
    StageState& one = stages_[s];
    if (one.parameters.empty() ||
        std::holds_alternative<std::monostate>(options_.pipeline.optimizer))
      return;
    check_trainable(one);
    AnyStructure state = one.stage.function().init(options_.pipeline.optimizer, one.parameters);
    for (Tensor& each : state.tensors) {
      std::optional<Sharding> sharding = each.sharding();
      if (!sharding)
        sharding = Sharding::replicated(one.stage.mesh(), static_cast<std::size_t>(each.rank()));
      each = abstract_tensor(each.type(), sharding);
    }
    Jit<UpdateRun> program(
        UpdateRun{one.stage.shared_function(), options_.pipeline.optimizer, state.with({})},
        JitOptions{.name = cat(one.name, " update"), .donate = {1}}, one.stage.where());
    std::vector<Tensor> factor;
    if (options_.pipeline.clip_norm > 0) factor.push_back(abstract_tensor({}, DType::f32));
    CompiledStageProgram made =
        compiler_.compile(program, one.stage.mesh(), one.stage.where(), one.parameters,
                          one.accumulators, state.tensors, factor);
    add_program(s, PipelineWork::kUpdate, made.report);
    parts_.stages[s].memory.optimizer_state = device_bytes(state.tensors);
    if (const std::optional<MemoryUse>& memory = made.report->memory()) {
      needs_[s].update_results = memory->outputs - memory->aliased;
      needs_[s].update_program = memory->temporaries + memory->code;
    }
  }

  void set_times() {
    std::vector<StageTimes> times(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      StageTimes& to = times[s];
      to = {0, 0, 0, 0, 0, 0};
      for (const PipelineProgram& one : parts_.stages[s].programs) switch (one.work) {
          case PipelineWork::kForward: to.forward += one.time; break;
          case PipelineWork::kBackward:
          case PipelineWork::kInputGradient: to.input_gradient += one.time; break;
          case PipelineWork::kWeightGradient: to.weight_gradient += one.time; break;
          default: to.update += one.time;
        }
      if (!options_.times.empty()) to = options_.times[options_.times.size() == 1 ? 0 : s];
    }
    std::stable_sort(
        parts_.transfers.begin(), parts_.transfers.end(), [](const auto& a, const auto& b) {
          return std::pair(!a.is_forward(), a.from) < std::pair(!b.is_forward(), b.from);
        });
    const auto time_of = [&](const PipelineTransfer& one) -> double& {
      StageTimes& from = times[static_cast<std::size_t>(one.from)];
      return one.is_forward() ? from.send_forward : from.send_backward;
    };
    for (PipelineTransfer& one : parts_.transfers) {
      if (time_of(one) > 0)
        one.time = time_of(one);
      else
        time_of(one) = one.time;
    }
    parts_.timeline = timeline_of(schedule_, times, where_);
    for (PipelineTransfer& one : parts_.transfers) {
      if (one.time == 0) continue;
      double kept = std::exchange(time_of(one), 0);
      one.exposed =
          std::max(parts_.timeline.length - timeline_of(schedule_, times, where_).length, 0.0);
      time_of(one) = kept;
      one.link_use = one.time * schedule_.microbatches() / parts_.timeline.length;
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      parts_.stages[s].times = times[s];
      for (const auto& worker : parts_.timeline.workers)
        for (const PipelineTimeline::Entry& one : worker)
          if (one.action.stage == static_cast<int>(s) && !is_send(one.action.work))
            parts_.stages[s].busy += one.end - one.start;
    }
  }

  void set_memory() {
    std::optional<std::int64_t> capacity =
        options_.memory ? options_.memory : device_memory(target_);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      PipelineStageMemory& to = parts_.stages[s].memory;
      to.parameters = device_bytes(stages_[s].parameters);
      to.gradients = device_bytes(stages_[s].accumulators);
      to.activations_of_microbatch = needs_[s].after_forward;
      to.kept_microbatches = schedule_.peak_activations()[s];
      to.temporaries = needs_[s].program;
      to.capacity = capacity;
      needs_[s].always = to.parameters + to.gradients + to.optimizer_state;
    }
    set_peaks(parts_.timeline, needs_, parts_.stages);
  }

  Target target_;
  PipelineSchedule schedule_;
  const ExplainPipelineOptions& options_;
  StageCompiler& compiler_;
  SourceLocation where_;
  PipelineReport::Parts parts_;
  std::vector<StageState> stages_;
  std::vector<StageNeeds> needs_;
  std::vector<std::vector<Tensor>> carry_, cotangents_;
  std::vector<StagePrograms::Kept> kept_;
};

}  // namespace

PipelineReport explained(const Target& target, const std::vector<PipelineStage>& stages,
                         const PipelineSchedule& schedule, const AnyStructure& microbatch,
                         const ExplainPipelineOptions& options, StageCompiler* compiler,
                         SourceLocation where) {
  std::optional<StageCompiler> own;
  if (!compiler) compiler = &own.emplace(target, options);
  return PipelineExplainer(target, stages, schedule, options, *compiler, where).report(microbatch);
}

}  // namespace meshard::internal
