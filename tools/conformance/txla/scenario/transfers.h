// Judges the transfers and compilations of a scenario by running totals.
#pragma once
#include <string>

#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/scenario/standing.h"

namespace meshard::conformance {

/// Totals, because meshard sends a value when it knows where to, the reference when it is named.
/// They must be equal as long as all that was done is to place host data as the user said, to
/// compute with it and to read it.
class TransfersJudge {
 public:
  /// @param standings before the step
  /// @return what is wrong; empty if nothing is
  std::string after(const Json& step, const Json& recorded, const Json& ours,
                    const Standings& standings);
  /// From here on a value lies otherwise than in the reference, by a rule.
  void lie_otherwise() { plain_ = false; }
  /// In the end there were fewer than recorded.
  bool are_fewer() const { return ours_ != recorded_; }

 private:
  TransferTotals ours_, recorded_;
  bool plain_ = true;
  bool readable_ = true;  // bytes read can be compared
  std::uint64_t our_compiles_ = 0, recorded_compiles_ = 0;
};

}  // namespace meshard::conformance
