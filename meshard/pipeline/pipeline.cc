#include "meshard/pipeline/pipeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/pipeline/internal/action_log.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "meshard/pipeline/stage_programs.h"
#include "meshard/runtime/gather.h"
#include "meshard/runtime/transfer.h"

namespace meshard {
namespace internal {

struct SumRun {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a + b; }
};

struct CopyRun {
  Tensor operator()(const Tensor& a) const { return optimization_barrier(a); }
};

struct MeanRun {
  Tensor operator()(const std::vector<Tensor>& losses) const {
    Tensor sum = losses[0];
    for (std::size_t m = 1; m < losses.size(); ++m) sum = sum + losses[m];
    return sum * (1.0 / static_cast<double>(losses.size()));
  }
};

// One microbatch at one stage.
struct Flight {
  // From the previous stage and from the next one.
  std::vector<StartedTransfer> carry, cotangents;
  std::vector<Tensor> outputs, input_gradients;
  StagePrograms::Kept kept;
  std::int64_t kept_bytes = 0;
};

inline bool types_match(const std::vector<TensorType>& types, const std::vector<Tensor>& tensors) {
  return std::ranges::equal(
      types, tensors, [](const TensorType& type, const Tensor& one) { return type == one.type(); });
}

}  // namespace internal

using internal::AnyStructure;
using internal::Destination;
using internal::FailedAction;
using internal::Flight;
using internal::StageState;
using internal::Tie;
using internal::UpdatedStage;

class Pipeline::State {
 public:
  State(std::vector<PipelineStage> stages, PipelineSchedule schedule, PipelineOptions options,
        SourceLocation where)
      : schedule_(std::move(schedule)), options_(std::move(options)) {
    if (static_cast<int>(stages.size()) != schedule_.stages())
      throw_invalid(where, "[pipeline] ", stages.size(), " stages for a schedule of ",
                    schedule_.stages());
    find_ties(stages);
    stages_ = internal::stage_states(std::move(stages), schedule_);
    for (StageState& one : stages_) {
      for (const Tensor& each : one.stage.parameters().tensors)
        one.parameters.push_back(internal::placed(each, one.stage.mesh()));
      meshes_.push_back(one.stage.mesh());
    }
    order_actions();
    stats_.peak_activations.assign(stages_.size(), 0);
    stats_.peak_activation_bytes.assign(stages_.size(), 0);
  }

  Tensor run(const std::vector<AnyStructure>& microbatches, bool update, SourceLocation where) {
    SourceScope line(where);
    if (update && std::holds_alternative<std::monostate>(options_.optimizer))
      throw Error(ErrorCode::kFailedPrecondition,
                  "[pipeline] step() needs PipelineOptions::optimizer; backward() does not", where);
    check_microbatches(microbatches, where);
    has_gradients_ = false;
    flights_.clear();
    for (std::size_t s = 0; s < stages_.size(); ++s) flights_.emplace_back(microbatches.size());
    live_.assign(stages_.size(), 0);
    live_bytes_.assign(stages_.size(), 0);
    log_.clear();
    is_logged_ = update;
    losses_.assign(microbatches.size(), Tensor());
    bool has_begun = false;
    try {
      prepare(microbatches.front());
      if (update)
        for (const StageState& one : stages_) internal::check_trainable(one);
      processes_ = internal::processes_of_run(meshes_);
      has_begun = true;
      for (const PipelineAction& action : order_) perform(action, microbatches, where);
      Tensor loss = mean_(losses_);
      if (processes_.size() > 1) loss = internal::in_each_process(loss, processes_);
      sum_ties();
      has_gradients_ = true;
      if (update) take_step(where);
      flights_.clear();
      log_.clear();
      return loss;
    } catch (...) {
      // What was computed from a failed value has failed with it: find where it began.
      std::optional<FailedAction> first = log_.first_failure();
      if (has_begun && processes_.size() > 1) tell_others(first);
      log_.clear();
      flights_.clear();
      has_gradients_ = false;
      for (StageState& one : stages_) one.accumulators.clear();
      if (!first) throw;
      throw first->error.at(where).with_note(place_of(first->action));
    }
  }

  AnyStructure stored(int stage, bool gradients, SourceLocation where) const {
    if (stage < 0 || stage >= schedule_.stages())
      throw_invalid(where, "[pipeline] there is no stage ", stage, " of ", schedule_.stages());
    const StageState& one = stages_[static_cast<std::size_t>(stage)];
    if (!gradients) return one.stage.parameters().with(one.parameters);
    if (!has_gradients_)
      throw Error(ErrorCode::kFailedPrecondition,
                  "[pipeline] there are no gradients: call backward() first; step() uses them up",
                  where);
    std::vector<Tensor> all(one.parameters.size());
    for (std::size_t i = 0; i < one.accumulators.size(); ++i)
      all[one.programs->parameter_gradients()[i]] = one.accumulators[i];
    return one.stage.parameters().with(std::move(all));
  }

  const PipelineSchedule& schedule() const { return schedule_; }
  const PipelineStats& stats() const { return stats_; }

 private:
  void find_ties(const std::vector<PipelineStage>& stages) {
    std::map<std::pair<const Node*, std::uint32_t>, std::pair<std::size_t, std::size_t>> owners;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::vector<Tensor>& tensors = stages[s].parameters().tensors;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const Value& value = tensors[i].value();
        if (!value) continue;  // placed() reports it
        auto [owner, is_new] = owners.try_emplace({value.node(), value.index()}, s, i);
        if (!is_new && owner->second.first != s)
          ties_.push_back({s, i, owner->second.first, owner->second.second});
      }
    }
  }

  // Called while an exception is handled.
  void tell_others(const std::optional<FailedAction>& first) const {
    if (first)
      return internal::give_up_across_processes(first->error.with_note(place_of(first->action)));
    try {
      throw;
    } catch (const Error& error) {
      internal::give_up_across_processes(error);
    } catch (const std::exception& error) {
      internal::give_up_across_processes(Error(ErrorCode::kUnknown, error.what()));
    }
  }

  // The actions in the order in which they begin if all stages are equal, without updates. A send
  // that no action lists follows what it sends.
  void order_actions() {
    PipelineTimeline timeline = timeline_of(schedule_);
    std::vector<std::tuple<double, std::size_t, PipelineAction>> all;
    for (std::size_t worker = 0; worker < timeline.workers.size(); ++worker)
      for (const PipelineTimeline::Entry& one : timeline.workers[worker]) {
        if (one.action.work != PipelineWork::kUpdate)
          all.emplace_back(one.start, worker, one.action);
        if (is_send(one.action.work))
          sends_.insert({one.action.work, one.action.stage, one.action.microbatch});
      }
    // A send takes no time here, so that it begins together with the action that waits for it.
    const auto key = [](const auto& one) {
      return std::pair(std::get<0>(one), !is_send(std::get<2>(one).work));
    };
    std::ranges::stable_sort(all, [&](const auto& a, const auto& b) { return key(a) < key(b); });
    for (const auto& [start, worker, action] : all) order_.push_back(action);
  }

  void check_microbatches(const std::vector<AnyStructure>& microbatches,
                          SourceLocation where) const {
    if (static_cast<int>(microbatches.size()) != schedule_.microbatches())
      throw_invalid(where, "[pipeline] got ", microbatches.size(),
                    " microbatches for a schedule of ", schedule_.microbatches());
    for (std::size_t m = 1; m < microbatches.size(); ++m) {
      if (!microbatches[m].same_around_tensors(microbatches[0]))
        throw_invalid(where, "[pipeline] microbatch ", m,
                      " has another structure than microbatch 0: lengths, keys and values that are "
                      "not tensors must be equal");
      const auto &first = microbatches[0].tensors, &other = microbatches[m].tensors;
      bool same = first.size() == other.size();
      for (std::size_t i = 0; same && i < first.size(); ++i)
        same = first[i].type(where) == other[i].type(where);
      if (!same)
        throw_invalid(where, "[pipeline] microbatch ", m, " has other types than microbatch 0: (",
                      types_of(other), "), not (", types_of(first), ")");
    }
  }
  static std::string types_of(const std::vector<Tensor>& tensors) {
    std::vector<TensorType> types;
    for (const Tensor& each : tensors) types.push_back(each.type());
    return join(types, ", ");
  }

  // Traces the stages, if the batch has another structure or other types; makes accumulators of
  // zeros.
  void prepare(const AnyStructure& batch) {
    if (!batch.same_around_tensors(batch_) || !internal::types_match(batch_types_, batch.tensors)) {
      batch_ = {};  // an error below leaves no programs
      for (StageState& one : stages_) {
        one.programs.reset();
        one.zeros.reset();
        one.destinations.clear();
      }
      internal::trace_stages(stages_, batch, schedule_);
      batch_ = batch.with({});
      batch_types_.clear();
      for (const Tensor& each : batch.tensors) batch_types_.push_back(each.type());
    }
    for (StageState& one : stages_) {
      if (one.programs->parameter_gradients().empty()) continue;
      if (!one.zeros) one.zeros.emplace(internal::zeros_of(one));
      one.accumulators = (*one.zeros)();
    }
  }

  // Says in which action an error occurred.
  std::string place_of(const PipelineAction& action) const {
    std::string text = cat("in ", stages_[static_cast<std::size_t>(action.stage)].name, ", ",
                           enum_name(action.work));
    if (action.work != PipelineWork::kUpdate) append(text, " of microbatch ", action.microbatch);
    return text;
  }
  template <class F>
  void guarded(const PipelineAction& action, SourceLocation where, F&& f) const {
    try {
      f();
    } catch (const Error& error) {
      throw Error(error.code(), std::string(error.message()),
                  error.where().known() ? error.where() : where)
          .with_note(place_of(action));
    }
  }

  // An action, and what follows it.
  void perform(const PipelineAction& action, const std::vector<AnyStructure>& microbatches,
               SourceLocation where) {
    auto s = static_cast<std::size_t>(action.stage),
         m = static_cast<std::size_t>(action.microbatch);
    std::vector<Tensor> arrived = arrivals(action, where);
    guarded(action, where, [&] {
      switch (action.work) {
        case PipelineWork::kForward: forward(s, m, arrived, microbatches[m].tensors); break;
        case PipelineWork::kBackward:
        case PipelineWork::kInputGradient:
          input_gradient(action.work, s, m, std::move(arrived));
          break;
        case PipelineWork::kWeightGradient: weight_gradient(action.work, s, m); break;
        case PipelineWork::kSendForward: send_forward(s, m); break;
        case PipelineWork::kSendBackward: send_backward(s, m); break;
        case PipelineWork::kUpdate: break;
      }
    });
    std::optional<PipelineWork> send;
    if (action.work == PipelineWork::kForward && s + 1 < stages_.size())
      send = PipelineWork::kSendForward;
    if (gives_input_gradient(action.work) && s > 0) send = PipelineWork::kSendBackward;
    if (send && !is_listed(*send, s, m))
      perform({*send, action.stage, action.microbatch}, microbatches, where);
  }

  // What the action has received from another stage.
  std::vector<Tensor> arrivals(const PipelineAction& action, SourceLocation where) {
    auto s = static_cast<std::size_t>(action.stage),
         m = static_cast<std::size_t>(action.microbatch);
    std::vector<Tensor> arrived;
    const bool is_forward = action.work == PipelineWork::kForward;
    if (!is_forward && !gives_input_gradient(action.work)) return arrived;
    const PipelineAction send{is_forward ? PipelineWork::kSendForward : PipelineWork::kSendBackward,
                              is_forward ? action.stage - 1 : action.stage + 1, action.microbatch};
    for (StartedTransfer& one :
         std::exchange(is_forward ? flights_[s][m].carry : flights_[s][m].cotangents, {}))
      guarded(send, where, [&] {
        arrived.push_back(one.value());
        log(send.work, static_cast<std::size_t>(send.stage), m, arrived.back());
      });
    return arrived;
  }

  void log(PipelineWork work, std::size_t s, std::size_t m, const Tensor& result) {
    if (is_logged_) log_.add({work, static_cast<int>(s), static_cast<int>(m)}, result);
  }

  // The stage keeps so many bytes more for the microbatch.
  void keep(std::size_t s, std::size_t m) {
    Flight& flight = flights_[s][m];
    std::int64_t bytes = stages_[s].programs->bytes_of(flight.kept);
    live_bytes_[s] += bytes - flight.kept_bytes;
    flight.kept_bytes = bytes;
    stats_.peak_activation_bytes[s] = std::max(stats_.peak_activation_bytes[s], live_bytes_[s]);
  }
  void forget(std::size_t s, std::size_t m) {
    live_bytes_[s] -= flights_[s][m].kept_bytes;
    flights_[s][m].kept_bytes = 0;
    --live_[s];
  }

  void forward(std::size_t s, std::size_t m, const std::vector<Tensor>& carry,
               const std::vector<Tensor>& microbatch) {
    StageState& one = stages_[s];
    Flight& flight = flights_[s][m];
    std::vector<Tensor> batch;
    bool is_placed = !one.parameters.empty() || s > 0;
    for (const Tensor& each : microbatch)
      batch.push_back(is_placed && !each.sharding() ? each
                                                    : internal::placed(each, one.stage.mesh()));
    flight.outputs = one.programs->forward(one.parameters, carry, batch, flight.kept);
    ++stats_.launches;
    stats_.peak_activations[s] = std::max(stats_.peak_activations[s], ++live_[s]);
    keep(s, m);
    if (!flight.outputs.empty()) log(PipelineWork::kForward, s, m, flight.outputs.front());
    if (s + 1 == stages_.size()) losses_[m] = flight.outputs.front();
  }

  void send_forward(std::size_t s, std::size_t m) {
    std::vector<Tensor>& outputs = flights_[s][m].outputs;
    const Mesh& next = stages_[s + 1].stage.mesh();
    std::vector<Destination>& destinations = stages_[s].destinations;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::optional<Sharding> from = outputs[i].sharding();
      if (i == destinations.size())
        destinations.push_back({from, internal::like_sharding(from, next, outputs[i].shape())});
      else if (destinations[i].from != from)
        destinations[i] = {from, internal::like_sharding(from, next, outputs[i].shape())};
      flights_[s + 1][m].carry.push_back(started(outputs[i], next, destinations[i].to));
    }
    outputs.clear();
  }

  // With the weights' gradients, if the stage does not split them.
  void input_gradient(PipelineWork work, std::size_t s, std::size_t m,
                      std::vector<Tensor> cotangents) {
    StageState& one = stages_[s];
    Flight& flight = flights_[s][m];
    if (one.splits_gradients) {
      flight.input_gradients = one.programs->input_gradient(std::move(cotangents), flight.kept);
      keep(s, m);
    } else {
      flight.input_gradients =
          one.programs->backward(one.accumulators, std::move(cotangents), std::move(flight.kept));
      flight.kept = {};
      forget(s, m);
    }
    // One result of the launch.
    for (const auto* results :
         {&flight.input_gradients, &flight.kept.handed_over, &one.accumulators})
      if (!results->empty()) {
        log(work, s, m, results->front());
        break;
      }
    ++stats_.launches;
    // A backward action of a stage that has the two gradients apart for other microbatches.
    if (one.splits_gradients && work == PipelineWork::kBackward) weight_gradient(work, s, m);
  }

  void send_backward(std::size_t s, std::size_t m) {
    std::vector<Tensor>& gradients = flights_[s][m].input_gradients;
    const std::vector<std::size_t>& positions = stages_[s].programs->carry_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      flights_[s - 1][m].cotangents.push_back(
          started(gradients[i], stages_[s - 1].stage.mesh(),
                  stages_[s - 1].destinations[positions[i]].from));
    }
    gradients.clear();
  }

  void weight_gradient(PipelineWork work, std::size_t s, std::size_t m) {
    stages_[s].programs->weight_gradient(stages_[s].accumulators, std::move(flights_[s][m].kept));
    flights_[s][m].kept = {};
    ++stats_.launches;
    forget(s, m);
    if (!stages_[s].accumulators.empty()) log(work, s, m, stages_[s].accumulators.front());
  }

  // To another stage's devices; what these have to do is launched when the value is used.
  StartedTransfer started(const Tensor& value, const Mesh& to,
                          const std::optional<Sharding>& sharding) {
    if (internal::is_on(value, to)) return value;
    ++stats_.sends;
    if (!sharding) return internal::placed(value, to);
    return start_transfer(value, *sharding);
  }
  Tensor sent(const Tensor& value, const Mesh& to, const std::optional<Sharding>& sharding) {
    return started(value, to, sharding).value();
  }

  bool is_listed(PipelineWork work, std::size_t s, std::size_t m) const {
    return sends_.contains({work, static_cast<int>(s), static_cast<int>(m)});
  }

  // Adds the gradients of tied parameters to those of their owners, and returns the sums.
  void sum_ties() {
    for (const Tie& tie : ties_) {
      Tensor *own = stages_[tie.stage].accumulator(tie.leaf),
             *owner = stages_[tie.owner_stage].accumulator(tie.owner_leaf);
      if (!own || !owner) continue;
      *owner = add_(*owner, sent(*own, stages_[tie.owner_stage].stage.mesh(), owner->sharding()));
    }
    for (const Tie& tie : ties_) {
      Tensor *own = stages_[tie.stage].accumulator(tie.leaf),
             *owner = stages_[tie.owner_stage].accumulator(tie.owner_leaf);
      if (own && owner) *own = sent(*owner, stages_[tie.stage].stage.mesh(), own->sharding());
    }
  }

  // Each stage's update uses up its gradients: stages on the same devices, which have one tensor
  // for the sum of a tied parameter, need one each.
  void separate_ties() {
    for (const Tie& tie : ties_) {
      Tensor* own = stages_[tie.stage].accumulator(tie.leaf);
      if (own && internal::is_on(*own, stages_[tie.owner_stage].stage.mesh())) *own = copy_(*own);
    }
  }

  // All stages take their steps, or none does.
  void take_step(SourceLocation where) {
    std::vector<UpdatedStage> next(stages_.size());
    std::vector<Tensor> factor = norm_.factor(stages_, ties_, options_.clip_norm);
    has_gradients_ = false;
    separate_ties();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].parameters.empty()) continue;
      const PipelineAction action{PipelineWork::kUpdate, static_cast<int>(s), 0};
      guarded(action, where,
              [&] { next[s] = internal::updated(stages_[s], options_.optimizer, factor); });
      log(action.work, s, 0, next[s].parameters.front());
      ++stats_.launches;
    }
    for (const Tie& tie : ties_) {
      const Tensor& own = stages_[tie.stage].parameters[tie.leaf];
      next[tie.stage].parameters[tie.leaf] = sent(next[tie.owner_stage].parameters[tie.owner_leaf],
                                                  stages_[tie.stage].stage.mesh(), own.sharding());
    }
    for (const UpdatedStage& one : next) sync(one.parameters, one.optimizer_state, where);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].parameters = std::move(next[s].parameters);
      stages_[s].optimizer_state.tensors = std::move(next[s].optimizer_state);
    }
  }

  PipelineSchedule schedule_;
  PipelineOptions options_;
  std::vector<StageState> stages_;
  std::vector<Tie> ties_;
  std::vector<PipelineAction> order_;
  std::set<std::tuple<PipelineWork, int, int>> sends_;  // those that the schedule lists
  internal::GradientNorm norm_;
  Jit<internal::MeanRun> mean_ = jit(internal::MeanRun{}, {.name = "mean of losses"});
  Jit<internal::SumRun> add_ =
      jit(internal::SumRun{}, {.name = "sum of tied gradients", .donate = {0}});
  Jit<internal::CopyRun> copy_ = jit(internal::CopyRun{}, {.name = "copy of tied gradients"});
  PipelineStats stats_;
  bool has_gradients_ = false;
  std::vector<Mesh> meshes_;    // by stage
  std::vector<int> processes_;  // of the stages; empty in a run of one process

  // The types that the programs are for.
  AnyStructure batch_;  // of the last run, without its tensors
  std::vector<TensorType> batch_types_;

  // Of the step that is being run.
  std::vector<std::vector<Flight>> flights_;  // by stage and microbatch
  std::vector<int> live_;                     // by stage
  std::vector<std::int64_t> live_bytes_;      // by stage
  internal::ActionLog log_;                   // of steps, which wait, but not of backward()
  bool is_logged_ = false;
  std::vector<Tensor> losses_;  // by microbatch
};

Pipeline::Pipeline(std::vector<PipelineStage> stages, PipelineSchedule schedule,
                   PipelineOptions options, SourceLocation where)
    : state_(std::make_unique<State>(std::move(stages), std::move(schedule), std::move(options),
                                     where)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

const PipelineSchedule& Pipeline::schedule() const { return state_->schedule(); }
PipelineStats Pipeline::stats() const { return state_->stats(); }

Tensor Pipeline::run(const std::vector<internal::AnyStructure>& microbatches, bool update,
                     SourceLocation where) {
  return state_->run(microbatches, update, where);
}

internal::AnyStructure Pipeline::stored(int stage, bool gradients, SourceLocation where) const {
  return state_->stored(stage, gradients, where);
}

void Pipeline::check_type(bool holds, int stage, SourceLocation where) {
  if (!holds)
    throw_invalid(where, "[pipeline] the parameters of stage ", stage, " have another C++ type");
}

}  // namespace meshard
