// Compares the running totals of a scenario's transfers and compilations.
#pragma once
#include <string>

#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/scenario/standing.h"

namespace meshard::conformance {

/// Compares totals, because meshard sends a value when its destination is known, the reference when
/// a step names it. The totals must be equal as long as the steps only place host data as the user
/// specified, compute with it and read it.
class TransfersJudge {
 public:
  /// @param standings before the step
  /// @return the error; empty if there is none
  std::string after(const Json& step, const Json& recorded, const Json& ours,
                    const Standings& standings);
  /// From here on, a rule lets a value have another placement than in the reference.
  void lie_otherwise() { plain_ = false; }
  /// Whether the final totals are below the recorded ones.
  bool are_fewer() const { return ours_ != recorded_; }

 private:
  TransferTotals ours_, recorded_;
  bool plain_ = true;
  bool readable_ = true;  // whether the bytes read are comparable
  std::uint64_t our_compiles_ = 0, recorded_compiles_ = 0;
};

}  // namespace meshard::conformance
