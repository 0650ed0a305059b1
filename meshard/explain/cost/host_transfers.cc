// Tested in meshard/explain/cost/schedule_test.cc.
#include "meshard/explain/cost/host_transfers.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/time_text.h"

namespace meshard {
namespace {

std::string host_bytes_text(double bytes) {
  return byte_text(static_cast<std::int64_t>(std::min(bytes, static_cast<double>(kMostCounted))));
}

}  // namespace

std::string HostTransfers::to_string() const {
  std::string text = cat("host memory: ", host_bytes_text(from_host), " from the host and ",
                         host_bytes_text(to_host), " to it in ", executions,
                         executions == 1 ? " transfer a run" : " transfers a run");
  if (seconds > 0) append(text, cat(", about ", time_text(seconds)));
  return text;
}

HostTransfers host_transfers_of(const StepCosts& costs) {
  HostTransfers sum;
  double from_seconds = 0, to_seconds = 0;
  for (const ReachedComputation& each : costs.executions().calls().callers_first()) {
    const ComputationRuns& runs = *costs.executions().find(each.index->computation().id);
    // The computation of an asynchronous instruction counts at its start.
    if (runs.fused || runs.applied || (each.call && each.call->opcode == "async-start")) continue;
    auto times = static_cast<double>(runs.executions);
    for (const HloInstruction& one : each.index->computation().instructions) {
      HostTraffic moved = host_traffic(costs.executions().module(), *each.index, one);
      if (moved == HostTraffic()) continue;
      StepCost cost = costs.of(*each.index, one);
      sum.from_host += times * moved.from_host;
      sum.to_host += times * moved.to_host;
      sum.executions = saturating_add(sum.executions, runs.executions);
      from_seconds += times * cost.from_host_seconds;
      to_seconds += times * cost.to_host_seconds;
    }
  }
  sum.seconds = std::max(from_seconds, to_seconds);
  return sum;
}

}  // namespace meshard
