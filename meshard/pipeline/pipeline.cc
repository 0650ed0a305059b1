#include "meshard/pipeline/pipeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/optim/clip.h"
#include "meshard/pipeline/internal/stage_placement.h"
#include "meshard/pipeline/internal/stage_programs.h"
#include "meshard/pipeline/schedule/timeline.h"
#include "meshard/runtime/transfer.h"

namespace meshard {
namespace internal {

// The optimizer's step of one stage.
struct UpdateRun {
  std::shared_ptr<const StageFunction> function;
  PipelineOptimizer optimizer;
  AnyStructure state;  // its form
  std::pair<std::vector<Tensor>, std::vector<Tensor>> operator()(
      const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
      const std::vector<Tensor>& now, const std::vector<Tensor>& factor) const {
    std::vector<Tensor> scaled;
    for (const Tensor& each : gradients)
      scaled.push_back(factor.empty() ? each : astype(each * factor[0], each.dtype()));
    return function->update(optimizer, parameters, scaled, state.with(now));
  }
};

struct SquaresRun {
  Tensor operator()(const std::vector<Tensor>& gradients) const {
    return square(optim::internal::norm_of(gradients));
  }
};

struct SumRun {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return a + b; }
};

// A stage with its values.
struct StageState {
  explicit StageState(PipelineStage made) : stage(std::move(made)) {}
  PipelineStage stage;
  std::string name;
  /// Whether the schedule computes the gradients of inputs and parameters apart.
  bool splits_gradients = false;
  std::vector<Tensor> parameters, accumulators;
  /// Of its results, once they have been sent.
  std::vector<std::optional<Sharding>> output_shardings;
  AnyStructure optimizer_state;
  std::optional<StagePrograms> programs;
  std::optional<Jit<UpdateRun>> update;
};

// A parameter that is also one of an earlier stage.
struct Tie {
  std::size_t stage, leaf, owner_stage, owner_leaf;
};

// One microbatch at one stage.
struct Flight {
  std::vector<Tensor> carry, outputs, cotangents, input_gradients;
  StagePrograms::Kept kept;
};

inline bool types_match(const std::vector<TensorType>& types, const std::vector<Tensor>& tensors) {
  return std::equal(types.begin(), types.end(), tensors.begin(), tensors.end(),
                    [](const TensorType& type, const Tensor& one) { return type == one.type(); });
}

}  // namespace internal

using internal::AnyStructure;
using internal::Flight;
using internal::StageState;
using internal::Tie;

class Pipeline::State {
 public:
  State(std::vector<PipelineStage> stages, PipelineSchedule schedule, PipelineOptions options,
        SourceLocation where)
      : schedule_(std::move(schedule)), options_(std::move(options)) {
    if (static_cast<int>(stages.size()) != schedule_.stages())
      throw_invalid(where, "[pipeline] ", stages.size(), " stages for a schedule of ",
                    schedule_.stages());
    find_ties(stages);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      StageState& one = stages_.emplace_back(std::move(stages[s]));
      one.splits_gradients = splits(static_cast<int>(s));
      one.name = one.stage.options().name.empty() ? cat("stage ", s) : one.stage.options().name;
      for (const Tensor& each : one.stage.parameters().tensors)
        one.parameters.push_back(internal::placed(each, one.stage.mesh()));
    }
    order_actions();
    stats_.peak_activations.assign(stages_.size(), 0);
  }

  Tensor run(const std::vector<AnyStructure>& microbatches, bool update, SourceLocation where) {
    SourceScope line(where);
    if (update && std::holds_alternative<std::monostate>(options_.optimizer))
      throw Error(ErrorCode::kFailedPrecondition,
                  "[pipeline] step() needs PipelineOptions::optimizer; backward() does not", where);
    check_microbatches(microbatches, where);
    has_gradients_ = false;
    flights_.assign(stages_.size(), std::vector<Flight>(microbatches.size()));
    live_.assign(stages_.size(), 0);
    losses_.assign(microbatches.size(), Tensor());
    try {
      prepare(microbatches.front());
      for (const PipelineAction& action : order_) perform(action, microbatches, where);
      Tensor loss = losses_[0];
      for (std::size_t m = 1; m < losses_.size(); ++m) loss = loss + losses_[m];
      loss = loss * (1.0 / static_cast<double>(losses_.size()));
      sum_ties();
      has_gradients_ = true;
      if (update) take_step(where);
      flights_.clear();
      return loss;
    } catch (...) {
      flights_.clear();
      for (StageState& one : stages_) one.accumulators.clear();
      throw;
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
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    for (const auto& [start, worker, action] : all) order_.push_back(action);
  }

  void check_microbatches(const std::vector<AnyStructure>& microbatches,
                          SourceLocation where) const {
    if (static_cast<int>(microbatches.size()) != schedule_.microbatches())
      throw_invalid(where, "[pipeline] got ", microbatches.size(),
                    " microbatches for a schedule of ", schedule_.microbatches());
    for (std::size_t m = 1; m < microbatches.size(); ++m) {
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

  // Traces the stages, if the types of the batch have changed; makes accumulators of zeros.
  void prepare(const AnyStructure& batch) {
    if (batch.type != batch_type_ || !internal::types_match(batch_types_, batch.tensors)) {
      for (StageState& one : stages_) one.programs.reset();
      AnyStructure carry;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        StageState& one = stages_[s];
        internal::StageProgramOptions options{
            .name = one.name,
            .is_last = s + 1 == stages_.size(),
            .splits_gradients = one.splits_gradients,
            .seed = 1.0 / static_cast<double>(schedule_.microbatches())};
        one.programs.emplace(one.stage, one.parameters, s > 0 ? &carry : nullptr, batch, options);
        carry = one.programs->result();
        for (const TensorType& type : one.programs->result_types())
          carry.tensors.push_back(zeros(type.shape, type.dtype));  // only its type is used
      }
      batch_type_ = batch.type;
      batch_types_.clear();
      for (const Tensor& each : batch.tensors) batch_types_.push_back(each.type());
    }
    for (StageState& one : stages_) {
      std::vector<Tensor> wanted;
      for (std::size_t i : one.programs->parameter_gradients()) wanted.push_back(one.parameters[i]);
      one.accumulators = optim::internal::zeros_for(wanted, wanted, 1);
    }
  }

  bool splits(int stage) const {
    const auto& order = schedule_.order(schedule_.worker_of(stage));
    return std::any_of(order.begin(), order.end(), [&](const PipelineAction& one) {
      return one.stage == stage && one.work == PipelineWork::kInputGradient;
    });
  }

  void perform(const PipelineAction& action, const std::vector<AnyStructure>& microbatches,
               SourceLocation where) {
    auto s = static_cast<std::size_t>(action.stage),
         m = static_cast<std::size_t>(action.microbatch);
    try {
      switch (action.work) {
        case PipelineWork::kForward: forward(s, m, microbatches[m].tensors); break;
        case PipelineWork::kBackward:
        case PipelineWork::kInputGradient: input_gradient(s, m); break;
        case PipelineWork::kWeightGradient: weight_gradient(s, m); break;
        case PipelineWork::kSendForward: send_forward(s, m); break;
        case PipelineWork::kSendBackward: send_backward(s, m); break;
        case PipelineWork::kUpdate: break;
      }
    } catch (const Error& error) {
      throw Error(error.code(), std::string(error.message()),
                  error.where().known() ? error.where() : where)
          .with_note(
              cat("in ", stages_[s].name, ", ", enum_name(action.work), " of microbatch ", m));
    }
  }

  void forward(std::size_t s, std::size_t m, const std::vector<Tensor>& microbatch) {
    StageState& one = stages_[s];
    Flight& flight = flights_[s][m];
    std::vector<Tensor> batch;
    bool is_placed = !one.parameters.empty() || s > 0;
    for (const Tensor& each : microbatch)
      batch.push_back(is_placed && !each.sharding() ? each
                                                    : internal::placed(each, one.stage.mesh()));
    flight.outputs = one.programs->forward(one.parameters, flight.carry, batch, flight.kept);
    flight.carry.clear();
    ++stats_.launches;
    stats_.peak_activations[s] = std::max(stats_.peak_activations[s], ++live_[s]);
    if (s + 1 == stages_.size())
      losses_[m] = flight.outputs.front();
    else if (!is_listed(PipelineWork::kSendForward, s, m))
      send_forward(s, m);
  }

  void send_forward(std::size_t s, std::size_t m) {
    std::vector<Tensor>& outputs = flights_[s][m].outputs;
    for (const Tensor& each : outputs)
      flights_[s + 1][m].carry.push_back(sent(each, stages_[s + 1].stage.mesh()));
    std::vector<std::optional<Sharding>>& shardings = stages_[s].output_shardings;
    shardings.clear();
    for (const Tensor& each : outputs) shardings.push_back(each.sharding());
    outputs.clear();
  }

  // With the weights' gradients, if the stage does not split them.
  void input_gradient(std::size_t s, std::size_t m) {
    StageState& one = stages_[s];
    Flight& flight = flights_[s][m];
    std::vector<Tensor> cotangents = std::move(flight.cotangents);
    if (one.splits_gradients) {
      flight.input_gradients = one.programs->input_gradient(std::move(cotangents), flight.kept);
    } else {
      flight.input_gradients =
          one.programs->backward(one.accumulators, std::move(cotangents), std::move(flight.kept));
      flight.kept = {};
      --live_[s];
    }
    ++stats_.launches;
    if (s > 0 && !is_listed(PipelineWork::kSendBackward, s, m)) send_backward(s, m);
  }

  void send_backward(std::size_t s, std::size_t m) {
    std::vector<Tensor>& gradients = flights_[s][m].input_gradients;
    const std::vector<std::size_t>& positions = stages_[s].programs->carry_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::optional<Sharding>& there = stages_[s - 1].output_shardings[positions[i]];
      flights_[s - 1][m].cotangents.push_back(
          sent(gradients[i], stages_[s - 1].stage.mesh(), there));
    }
    gradients.clear();
  }

  void weight_gradient(std::size_t s, std::size_t m) {
    stages_[s].programs->weight_gradient(stages_[s].accumulators, std::move(flights_[s][m].kept));
    flights_[s][m].kept = {};
    ++stats_.launches;
    --live_[s];
  }

  Tensor sent(const Tensor& value, const Mesh& to,
              const std::optional<Sharding>& sharding = std::nullopt) {
    if (internal::is_on(value, to)) return value;
    ++stats_.sends;
    return sharding ? transfer(value, *sharding) : internal::placed(value, to);
  }

  bool is_listed(PipelineWork work, std::size_t s, std::size_t m) const {
    return sends_.contains({work, static_cast<int>(s), static_cast<int>(m)});
  }

  // The accumulator of a parameter; null if it has no gradient.
  Tensor* accumulator(std::size_t stage, std::size_t leaf) {
    StageState& one = stages_[stage];
    const std::vector<std::size_t>& leaves = one.programs->parameter_gradients();
    auto found = std::find(leaves.begin(), leaves.end(), leaf);
    return found == leaves.end()
               ? nullptr
               : &one.accumulators[static_cast<std::size_t>(found - leaves.begin())];
  }

  // Adds the gradients of tied parameters to those of their owners, and returns the sums.
  void sum_ties() {
    for (const Tie& tie : ties_) {
      Tensor *own = accumulator(tie.stage, tie.leaf),
             *owner = accumulator(tie.owner_stage, tie.owner_leaf);
      if (!own || !owner) continue;
      *owner = add_(*owner, sent(*own, stages_[tie.owner_stage].stage.mesh(), owner->sharding()));
    }
    for (const Tie& tie : ties_) {
      Tensor *own = accumulator(tie.stage, tie.leaf),
             *owner = accumulator(tie.owner_stage, tie.owner_leaf);
      if (own && owner) *own = sent(*owner, stages_[tie.stage].stage.mesh(), own->sharding());
    }
  }

  bool is_tied(std::size_t stage, std::size_t leaf) const {
    return std::any_of(ties_.begin(), ties_.end(),
                       [&](const Tie& tie) { return tie.stage == stage && tie.leaf == leaf; });
  }

  void take_step(SourceLocation where) {
    for (const StageState& one : stages_) sync(one.accumulators, where);
    std::vector<Tensor> factor = clip_factor();
    has_gradients_ = false;
    for (StageState& one : stages_) {
      if (one.accumulators.size() != one.parameters.size())
        throw_invalid(one.stage.where(), "[pipeline] ", one.name,
                      " has parameters that are not floats, which an optimizer cannot update");
      if (one.parameters.empty()) continue;
      if (!one.update) {
        one.optimizer_state = one.stage.function().init(options_.optimizer, one.parameters);
        one.update.emplace(internal::UpdateRun{one.stage.shared_function(), options_.optimizer,
                                               one.optimizer_state.with({})},
                           JitOptions{.name = cat(one.name, " update"), .donate = {0, 1, 2}},
                           one.stage.where());
      }
      auto [parameters, state] =
          (*one.update)(one.parameters, one.accumulators, one.optimizer_state.tensors, factor);
      one.parameters = std::move(parameters);
      one.optimizer_state.tensors = std::move(state);
      one.accumulators.clear();
      ++stats_.launches;
    }
    for (const Tie& tie : ties_) {
      Tensor& own = stages_[tie.stage].parameters[tie.leaf];
      own = sent(stages_[tie.owner_stage].parameters[tie.owner_leaf],
                 stages_[tie.stage].stage.mesh(), own.sharding());
    }
  }

  // Empty without a limit.
  std::vector<Tensor> clip_factor() {
    if (options_.clip_norm == 0) return {};
    Tensor total;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::vector<Tensor> own;
      for (std::size_t i = 0; i < stages_[s].accumulators.size(); ++i)
        if (!is_tied(s, stages_[s].programs->parameter_gradients()[i]))
          own.push_back(stages_[s].accumulators[i]);
      if (own.empty()) continue;
      Tensor squares = squares_(own);
      total = total.defined() ? total + squares : squares;
    }
    if (!total.defined()) return {};
    return {options_.clip_norm / maximum(sqrt(total), options_.clip_norm)};
  }

  PipelineSchedule schedule_;
  PipelineOptions options_;
  std::vector<StageState> stages_;
  std::vector<Tie> ties_;
  std::vector<PipelineAction> order_;
  std::set<std::tuple<PipelineWork, int, int>> sends_;  // those that the schedule lists
  Jit<internal::SquaresRun> squares_ =
      jit(internal::SquaresRun{}, {.name = "squares of gradients"});
  Jit<internal::SumRun> add_ =
      jit(internal::SumRun{}, {.name = "sum of tied gradients", .donate = {0}});
  PipelineStats stats_;
  bool has_gradients_ = false;

  // The types that the programs are for.
  const void* batch_type_ = nullptr;
  std::vector<TensorType> batch_types_;

  // Of the step that is being run.
  std::vector<std::vector<Flight>> flights_;  // by stage and microbatch
  std::vector<int> live_;                     // by stage
  std::vector<Tensor> losses_;                // by microbatch
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
