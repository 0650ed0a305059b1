// The time of a module's steps on each resource: matrix units, memory, links, host.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/cost/custom_calls.h"
#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/cost/memory_traffic.h"
#include "meshard/explain/cost/module_cost.h"
#include "meshard/hlo/module.h"

namespace meshard {

/// Value type: the cost of one execution of a step. Times are 0 if the hardware is unknown.
struct StepCost {
  /// Matrix products and convolutions at the rate of their types. Element-wise operations have no
  /// published rate.
  double compute_seconds = 0;
  double memory_seconds = 0;
  /// The collectives that it performs or starts. They refer to those of the StepCosts.
  std::vector<const Collective*> collectives;
  double link_bytes = 0;
  HostTraffic host;
  double from_host_seconds = 0, to_host_seconds = 0;
};

/// False for instructions that take no time themselves, and for the ends of asynchronous ones.
bool is_step(std::string_view opcode);

/// The collectives as they load the links:
/// - An all-reduce in a fusion that keeps only the device's part of the sum is a reduce-scatter,
///   and has its cost: TPU compilers write it this way.
/// - A custom call that sends data is added as a permutation over unknown axes.
std::vector<Collective> collectives_on_links(const Executions& executions,
                                             const std::vector<Collective>& collectives,
                                             const std::vector<CustomCall>& custom_calls);

/// Costs of a module's steps. Refers to all that it is made from.
class StepCosts {
 public:
  /// @param collectives see collectives_on_links()
  /// @param links null: the hardware is unknown
  StepCosts(const Executions& executions, const ModuleCost& cost,
            const std::vector<Collective>& collectives, const LinkModel* links);

  /// The cost of an instruction. Of the computations that it calls, those of fusions and of
  /// asynchronous instructions count; loops, branches and calls have steps of their own.
  StepCost of(const InstructionIndex& in, const HloInstruction& one) const;

  const Executions& executions() const { return *executions_; }
  const ModuleCost& cost() const { return *cost_; }
  const LinkModel* links() const { return links_; }

 private:
  void add_collectives(const HloInstruction& one, int depth, StepCost& to) const;
  const Executions* executions_;
  const ModuleCost* cost_;
  const LinkModel* links_;
  std::unordered_map<std::string_view, std::vector<const Collective*>> collectives_;
};

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

/// True for an instruction that starts asynchronous work: a collective, copy or send that another
/// instruction ends, or a fusion with the custom call `AsyncCollectiveStart` (libtpu 0.0.51).
bool starts_asynchronous(const ModuleIndex& module, const HloInstruction& one);

/// True for an instruction that waits for such work, or a fusion with `AsyncCollectiveDone`.
bool ends_asynchronous(const ModuleIndex& module, const HloInstruction& one);

/// The starts and ends of one computation. Refers to the module.
class AsynchronousPairs {
 public:
  AsynchronousPairs(const ModuleIndex& module, const InstructionIndex& in);

  /// The instruction whose work this one ends; null if it ends none of the computation's.
  const HloInstruction* start_of(const HloInstruction& end) const;

 private:
  std::unordered_map<const HloInstruction*, const HloInstruction*> start_of_;
};

}  // namespace meshard
