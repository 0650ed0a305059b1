// In which order the stages of a pipeline work.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pipeline/schedule/action.h"

namespace meshard {

/// Value type: an action and the time at which it begins, in any unit.
struct TimedAction {
  double start = 0;
  PipelineAction action;
  friend bool operator==(const TimedAction&, const TimedAction&) = default;
};

/// Value type: the order in which each worker of a pipeline does its work. A worker is a set of
/// devices (a submesh) that works for one or several stages. Stages are numbered along the
/// pipeline.
///
/// Every schedule is complete and free of deadlock: each stage has a forward and a backward action
/// (or an input and a weight gradient) for each microbatch, and one update; and the workers, each
/// doing its actions in order and waiting for what they need, reach the end. Sends need not be
/// listed: what no send action names is sent as soon as it is computed.
class PipelineSchedule {
 public:
  /// A schedule of the user's. If no update is listed, each worker's updates follow its other work.
  ///
  /// @param orders the actions of each worker, in order
  /// @error invalid argument: an action twice, or on another worker than others of its stage; a
  /// missing or redundant action (with its text, and the number of further ones); a deadlock (with
  /// what each worker waits for)
  static Result<PipelineSchedule> of(std::vector<std::vector<PipelineAction>> orders,
                                     std::string name = "custom");
  /// The same from actions with times: each worker does its actions in the order of their times,
  /// and in the order of the list where times are equal.
  /// @param worker_of_stage the worker of each stage; empty: each stage has its own
  /// @error as for of(); invalid argument: a stage without a worker
  static Result<PipelineSchedule> of(const std::vector<TimedAction>& actions,
                                     const std::vector<int>& worker_of_stage = {},
                                     std::string name = "custom");
  /// Parses one line for each worker, with its actions separated by spaces or commas:
  /// `0F0 0F1 0B0 0B1`. `#` starts a comment.
  /// @error as for of(); invalid argument, with the line
  static Result<PipelineSchedule> parse(std::string_view text, std::string name = "custom");

  /// `1F1B`, `GPipe`
  const std::string& name() const { return state_->name; }
  int stages() const { return static_cast<int>(state_->orders.worker_of_stage.size()); }
  int workers() const { return static_cast<int>(state_->orders.actions.size()); }
  int microbatches() const { return state_->orders.microbatches; }
  /// @pre 0 <= stage < stages()
  int worker_of(int stage) const {
    return state_->orders.worker_of_stage[static_cast<std::size_t>(stage)];
  }
  /// @pre 0 <= worker < workers()
  const std::vector<PipelineAction>& order(int worker) const {
    return state_->orders.actions[static_cast<std::size_t>(worker)];
  }
  /// True if gradients of inputs and parameters are separate actions for some microbatch.
  bool splits_gradients() const { return state_->splits_gradients; }
  /// For each stage, the largest number of microbatches in progress at the same time, whose
  /// activations it keeps: the forward has begun, and the backward or weight gradient has not
  /// ended.
  const std::vector<int>& peak_activations() const { return state_->peak_activations; }

  /// One line for each worker, as parse() reads it.
  std::string to_string() const;
  const internal::PipelineOrders& orders() const { return state_->orders; }
  friend bool operator==(const PipelineSchedule& a, const PipelineSchedule& b) {
    return a.state_->orders.actions == b.state_->orders.actions;
  }

 private:
  struct State {
    std::string name;
    internal::PipelineOrders orders;
    bool splits_gradients = false;
    std::vector<int> peak_activations;
  };
  explicit PipelineSchedule(State state);

  std::shared_ptr<const State> state_;
};

/// All forward passes, then all backward passes. Every stage keeps the activations of all
/// microbatches.
///
/// Source: Y. Huang et al., GPipe (2019).
/// @post with equal stages, the fraction of time that workers wait is (p-1)/(m+p-1) for p stages
/// and m microbatches
/// @error invalid argument, thrown: stages or microbatches is less than 1
PipelineSchedule gpipe(int stages, int microbatches,
                       SourceLocation where = SourceLocation::current());

/// 1F1B: stage s begins with p-s-1 forward passes, then does one forward and one backward pass in
/// turns.
///
/// Source: D. Narayanan et al., PipeDream (2019), and Memory-Efficient Pipeline-Parallel DNN
/// Training (2021), "PipeDream-Flush".
/// @post waiting as for gpipe(); stage s keeps the activations of min(m, p-s) microbatches
/// @error as for gpipe()
PipelineSchedule one_forward_one_backward(int stages, int microbatches,
                                          SourceLocation where = SourceLocation::current());

/// Interleaved 1F1B: worker w works for the stages w, w+p, w+2p, ... (`chunks` of them). The
/// time waited at both ends is shorter, because a stage takes only the time of one chunk.
///
/// Source: D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM (2021), 2.2.
/// @post chunks * workers stages; if m is a multiple of p, workers wait for (p-1)/(vm+p-1) of the
/// time, for v chunks
/// @error invalid argument, thrown: a number is less than 1, or the microbatches cannot be divided
/// into max(1, m/p) equal rounds
PipelineSchedule interleaved(int workers, int chunks, int microbatches,
                             SourceLocation where = SourceLocation::current());

/// ZB-H1: like 1F1B, but the gradients of the parameters are computed later than those of the
/// inputs, where a worker would otherwise wait.
///
/// Source: P. Qi et al., Zero Bubble Pipeline Parallelism (2023), "ZB-H1".
/// @post if forward, input gradient and weight gradient take equal times and m >= p, workers wait
/// for (p-1)/(3m+p-1) of the time, a third of what they wait for in 1F1B; no stage keeps the
/// activations of more than p microbatches
/// @error as for gpipe()
PipelineSchedule zero_bubble(int stages, int microbatches,
                             SourceLocation where = SourceLocation::current());

}  // namespace meshard
