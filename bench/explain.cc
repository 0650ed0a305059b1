// The report of a large compiled module: reading the module, and computing the report.
#include "bench/large_module.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/base/cat.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/memory_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/hlo/executions.h"

namespace meshard::bench {

ExplainedModule explain_bytes(const std::string& bytes) {
  Mesh mesh({{"data", 64}, {"model", 4}});
  LinkModel links(hardware_figures("v5e").value_or(HardwareFigures()), mesh, std::nullopt);
  HloModule module = HloModule::from_bytes(bytes).value();
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  ModuleCost cost(executions);
  std::vector<Collective> found = find_collectives(executions, mesh, nullptr).value();
  Roofline roofline = roofline_of(program_cost(cost), found, links);
  ExplainedModule explained;
  StepCosts costs(executions, cost, found, &links);
  SimulatedSchedule simulated = simulate_schedule(costs, found, roofline);
  explained.steps = timeline_of(costs, &simulated, nullptr).size();
  estimated_buffers(executions, nullptr);
  explained.collectives = group_collectives(found).size();
  explained.seconds = roofline.seconds();
  return explained;
}

void explain_rows(Report& report) {
  std::string bytes = large_module(20000);
  Least least;
  ExplainedModule explained;
  for (int turn = 0; turn < 5; ++turn) {
    double begin = now();
    explained = explain_bytes(bytes);
    if (explained.seconds > 0) least.take((now() - begin) / 1e3);
  }
  report.add({.name = "explain.module",
              .work = "reading a module of 20,000 instructions, and all of its report",
              .unit = "ms",
              .ours = least.value,
              .goal = "under a second",
              .bound = 1000,
              .note = cat(explained.steps, " steps, ", explained.collectives,
                          " lines of collectives, ", bytes.size() / 1024, " KiB")});
}

}  // namespace meshard::bench
