// Follows the workers of a pipeline through their actions.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshard/pipeline/schedule/action.h"

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

/// Runs each worker's actions in order, each as early as possible: when the worker is free, and
/// what the action needs is there.
///
/// - forward: the forward result of the previous stage;
/// - backward, input gradient: the stage's own forward, and the gradient from the next stage;
/// - weight gradient: the stage's input gradient;
/// - update: all gradients of the stage;
/// - send: what it sends.
///
/// What goes to a stage of another worker is sent at the time of its send action, or if there is
/// none as soon as it is computed, and is there after the duration of the send. Sends keep no
/// worker busy.
///
/// @pre each action is listed at most once, and numbers are in range
/// @param duration of an action; for a send, how long it is under way
PipelineWalk walk_pipeline(const PipelineOrders& orders,
                           const std::function<double(const PipelineAction&)>& duration);

}  // namespace meshard::internal
