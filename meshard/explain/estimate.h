// Lower bounds of a compiled program's time, and its steps in order.
#pragma once
#include <optional>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/explain/link_use.h"
#include "meshard/explain/roofline.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/module_cost.h"

namespace meshard {

/// What one run of the program costs a device, as the report tells it.
ProgramCost program_cost(const ModuleCost& cost);

/// The least time that the hardware's published rates allow.
///
/// - compute: matrix products and convolutions of each type at that type's rate. Element-wise
///   operations have no published rate; they are nearly always bound by memory.
/// - memory: ProgramCost::memory_bytes at the memory's rate.
/// - links: each collective as often as it runs, by LinkModel, one entry for each list of axes and
///   kind of link. Permutations the two ways round a ring run at the same time.
Roofline roofline_of(const ProgramCost& cost, const std::vector<Collective>& collectives,
                     const LinkModel& links);

/// The module's steps in the order in which the device runs them: what computes, moves or waits for
/// data, each instruction once. A loop, a call and a conditional stand before their steps, which
/// are one deeper; a fusion is one step. What several instructions call is listed where it is
/// called first. At most 200,000 steps.
///
/// @param links none: nothing is known of the hardware, and all seconds are 0
/// @param graph as in find_collectives
std::vector<TimelineEntry> timeline_of(const Executions& executions, const ModuleCost& cost,
                                       const std::vector<Collective>& collectives,
                                       const LinkModel* links, const Graph* graph);

}  // namespace meshard
