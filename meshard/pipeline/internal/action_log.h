// What a pipeline has launched, to find which action has failed.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "meshard/base/error.h"
#include "meshard/graph/tensor.h"
#include "meshard/pipeline/schedule/action.h"
#include "meshard/pjrt/event.h"

namespace meshard::internal {

/// An action that failed while it ran.
struct FailedAction {
  PipelineAction action;
  Error error;
};

/// The actions of one step and the events of their results, which keep no memory of the results.
class ActionLog {
 public:
  void clear() { entries_.clear(), events_.clear(); }
  /// Records the launches of an action. Takes one call of the plugin for each shard.
  /// @param result of the launch or transfer; undefined: nothing is remembered
  void add(const PipelineAction& action, const Tensor& result);
  /// The first action that is known to have failed; does not wait. Actions are added in an order in
  /// which each comes after what it needs, so that this one did not fail because of another.
  std::optional<FailedAction> first_failure() const;

 private:
  struct Entry {
    PipelineAction action;
    std::size_t end;  // of its events
  };
  std::vector<Entry> entries_;
  std::vector<pjrt::Event> events_;
};

}  // namespace meshard::internal
