// Transfers between a device and the memory of its host.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/base/fields.h"
#include "meshard/explain/cost/step_cost.h"

namespace meshard {

/// Value type: the transfers of one run of one device.
struct HostTransfers {
  /// Bytes, in all executions.
  double from_host = 0, to_host = 0;
  /// How often a transfer runs.
  std::int64_t executions = 0;
  /// Their time, if both directions run at the same time. 0: the rate is unknown.
  double seconds = 0;

  MESHARD_FIELDS(from_host, to_host, executions, seconds)
  /// `host memory: 16 MiB from the host and 16 MiB to it in 2 transfers a run, about 1.12 ms`
  std::string to_string() const;
  friend bool operator==(const HostTransfers&, const HostTransfers&) = default;
};

/// The sum over all steps. All zero if the program uses no host memory.
HostTransfers host_transfers_of(const StepCosts& costs);

}  // namespace meshard
