// Lower bounds for a compiled program's time, and its steps in order with their times.
#pragma once
#include <optional>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/cost/roofline.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/module_cost.h"

namespace meshard {

/// The cost of one run on one device, in the form used by the report.
ProgramCost program_cost(const ModuleCost& cost);

/// A lower bound for the time, from the hardware's published rates.
///
/// - compute: matrix products and convolutions of each type at that type's rate. Element-wise
///   operations have no published rate; they are nearly always memory-bound.
/// - memory: ProgramCost::memory_bytes at the memory bandwidth.
/// - links: all executions of each collective, by LinkModel, with one entry for each list of axes
///   and kind of link. Different kinds of links, and different links of a grid, run concurrently.
Roofline roofline_of(const ProgramCost& cost, const std::vector<Collective>& collectives,
                     const LinkModel& links);

/// The module's steps in execution order. Steps are the instructions that compute, move or wait for
/// data, each listed once. A loop, call or conditional comes before its steps, which are one level
/// deeper; a fusion is one step. Steps of a shared computation are listed at its first call. At
/// most 200,000 steps.
///
/// @param simulated the transfers' hidden and exposed times; null: not known
/// @param graph as in find_collectives
std::vector<TimelineEntry> timeline_of(const StepCosts& costs, const SimulatedSchedule* simulated,
                                       const Graph* graph);

}  // namespace meshard
