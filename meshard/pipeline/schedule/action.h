// The pieces of work of a pipeline, and how its workers follow them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/result.h"

namespace meshard {

/// The kinds of work of a stage of a pipeline. The letters follow PyTorch's schedules
/// (torch.distributed.pipelining).
enum class PipelineWork {
  kForward,         ///< the stage's function for one microbatch
  kBackward,        ///< the gradients of the stage's inputs and of its parameters
  kInputGradient,   ///< the gradients of the inputs only; kWeightGradient follows
  kWeightGradient,  ///< the gradients of the parameters only
  kUpdate,          ///< the optimizer's step, after all microbatches
  kSendForward,     ///< the result of kForward goes to the next stage
  kSendBackward,    ///< the gradients of the inputs go to the previous stage
};

template <>
struct EnumNames<PipelineWork> {
  static constexpr EnumName<PipelineWork> kNames[] = {
      {PipelineWork::kForward, "forward"},
      {PipelineWork::kBackward, "backward"},
      {PipelineWork::kInputGradient, "input gradient"},
      {PipelineWork::kWeightGradient, "weight gradient"},
      {PipelineWork::kUpdate, "update"},
      {PipelineWork::kSendForward, "send forward"},
      {PipelineWork::kSendBackward, "send backward"},
  };
};

/// The letters of the text form: `F`, `B`, `I`, `W`, `U`, `SEND_F`, `SEND_B`.
std::string_view letters(PipelineWork work);

/// Value type: one piece of work of one stage.
struct PipelineAction {
  PipelineWork work = PipelineWork::kForward;
  int stage = 0;
  /// 0 for an update, which belongs to all microbatches.
  int microbatch = 0;

  /// Stage, letters and microbatch: `2F5`, `0SEND_F1`; an update has no microbatch: `2U`.
  std::string to_string() const;
  /// Reads what to_string() writes. @error invalid argument, with the text
  static Result<PipelineAction> parse(std::string_view text);
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

/// True for the work that computes the gradients of a stage's inputs: kBackward, kInputGradient.
constexpr bool gives_input_gradient(PipelineWork work) {
  return work == PipelineWork::kBackward || work == PipelineWork::kInputGradient;
}
/// True for the work after which a stage no longer needs what its forward pass kept: kBackward,
/// kWeightGradient.
constexpr bool ends_microbatch(PipelineWork work) {
  return work == PipelineWork::kBackward || work == PipelineWork::kWeightGradient;
}
/// True for kSendForward and kSendBackward, which keep no device busy.
constexpr bool is_send(PipelineWork work) {
  return work == PipelineWork::kSendForward || work == PipelineWork::kSendBackward;
}

}  // namespace meshard

namespace meshard::internal {

/// Value type: the actions of each worker in order, and the worker of each stage.
struct PipelineOrders {
  std::vector<std::vector<PipelineAction>> actions;
  std::vector<int> worker_of_stage;
  int microbatches = 0;
};

/// Value type: when an action ran.
struct WalkedAction {
  PipelineAction action;
  double start = 0, end = 0;
  friend bool operator==(const WalkedAction&, const WalkedAction&) = default;
};

/// Value type: a worker that cannot go on, because what its next action needs never happens.
struct BlockedWorker {
  int worker = 0;
  PipelineAction at, needs;
};

struct PipelineWalk {
  /// The actions of each worker that ran, in order.
  std::vector<std::vector<WalkedAction>> done;
  /// Empty if all actions ran.
  std::vector<BlockedWorker> blocked;
};

/// Runs each worker's actions in order, each as early as possible: when the worker is free, and the
/// inputs of the action are available:
///
/// - forward: the forward result of the previous stage;
/// - backward, input gradient: the stage's own forward, and the gradient from the next stage;
/// - weight gradient: the stage's input gradient;
/// - update: all gradients of the stage;
/// - send: the sent value.
///
/// A value for a stage of another worker is sent at the time of its send action, or without one as
/// soon as it is computed, and arrives after the duration of the send. Sends keep no worker busy.
///
/// @pre each action is listed at most once, and numbers are in range
/// @param duration of an action; for a send, how long it is under way
PipelineWalk walk_pipeline(const PipelineOrders& orders,
                           const std::function<double(const PipelineAction&)>& duration);

}  // namespace meshard::internal
