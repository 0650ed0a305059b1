// An estimate of a compiled program's time, from the order of its instructions.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/explain/cost/roofline.h"
#include "meshard/explain/cost/step_cost.h"

namespace meshard {

/// Value type: the time of transfers, divided into what runs behind computation and the rest.
struct TransferTime {
  /// Behind computation.
  double hidden_seconds = 0;
  /// The device waits.
  double exposed_seconds = 0;

  MESHARD_FIELDS(hidden_seconds, exposed_seconds)
  friend bool operator==(const TransferTime&, const TransferTime&) = default;
};

/// Value type: the time of the collectives of one kind over the same axes, in one run.
struct CommunicationTime {
  /// `all-gather`, or `custom call` for data that custom calls send.
  std::string kind;
  /// The axes by name, `"data"`; empty if unknown.
  std::string axes;
  /// Number of instructions.
  std::int64_t collectives = 0;
  /// How often they run.
  std::int64_t executions = 0;
  TransferTime time = {};

  MESHARD_FIELDS(kind, axes, collectives, executions, time)
  static constexpr FieldNotes kFieldNotes{.inlined = "time"};
  friend bool operator==(const CommunicationTime&, const CommunicationTime&) = default;
};

/// Value type: an estimate of the time of one run on one device.
struct Schedule {
  double seconds = 0;
  /// The part in which the device computes or moves data in its memory.
  double busy_seconds = 0;
  /// Communication between devices. `exposed_seconds` is the part of `seconds` in which the device
  /// waits for it. Collectives that run at the same time may wait at the same time, so the exposed
  /// times of `communication` may add up to more.
  TransferTime links = {};
  /// The same for transfers from and to host memory.
  TransferTime host = {};
  /// Longest exposed time first.
  std::vector<CommunicationTime> communication = {};

  MESHARD_FIELDS(seconds, busy_seconds, links, host, communication)
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The schedule, and the transfers that each instruction starts, in one of its executions.
struct SimulatedSchedule {
  Schedule schedule;
  std::unordered_map<const HloInstruction*, TransferTime> steps;
};

/// Simulates the instructions in execution order, each as fast as StepCosts says.
/// - A step takes as long as its computation or its memory traffic, whichever is longer.
/// - Asynchronous collectives, copies and host transfers run from their start to their done; the
///   device waits at the done for the rest of their time. Asynchronous collectives are start and
///   done instructions, async-start, sends and receives, and the fusions in which TPU compilers
///   wrap `AsyncCollectiveStart` and `AsyncCollectiveDone`. A transfer that is not done when its
///   computation ends is waited for there. Asynchronous computation counts at its start.
/// - Collectives that use the same links run one after the other, others at the same time. In a
///   grid of chips, these are collectives that share a mesh axis; elsewhere, all. A collective over
///   slices has its part within the slice first. Host transfers in each direction run one after the
///   other.
/// - Memory has one queue: what asynchronous instructions move waits for the steps' own traffic.
/// - A collective that is not asynchronous is exposed, unless it is in a fusion with matrix
///   products, whose time hides it.
/// - A loop takes its body's time in each iteration (one, if the number is unknown), a conditional
///   that of its longest branch.
///
/// @param bound the result is not below it, except in programs with conditional collectives, whose
/// branches the bound adds up
/// @pre costs.links() is not null
SimulatedSchedule simulate_schedule(const StepCosts& costs,
                                    const std::vector<Collective>& collectives,
                                    const Roofline& bound);

}  // namespace meshard
