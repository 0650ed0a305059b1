// Reads a compiled module from any bytes, and computes everything that is derived from it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/memory_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/program_identity.h"

namespace meshard {
namespace {

void explain_bytes(std::string_view bytes) {
  static const Mesh kMesh({{"data", 2}, {"model", 4}});
  (void)largest_buffers(bytes, nullptr).ok();
  Result<HloModule> module = HloModule::from_bytes(bytes);
  if (!module.ok()) return;
  Result<ProgramIdentity> identity = ProgramIdentity::from_bytes(bytes);
  if (identity.ok() && first_difference(*identity, *identity)) std::abort();
  ModuleIndex index(*module);
  Result<Executions> executions = Executions::of(index);
  if (!executions.ok()) return;
  std::vector<CustomCall> calls = custom_calls_of(*executions);
  ModuleCost cost(*executions, calls);
  ProgramCost total = program_cost(cost);
  if (total.total_flops() < 0 || total.memory_bytes < 0) std::abort();
  (void)estimated_buffers(*executions, nullptr);
  Result<std::vector<Collective>> collectives = find_collectives(*executions, kMesh, nullptr);
  if (!collectives.ok()) return;
  HardwareFigures figures = hardware_figures("v5e").value_or(HardwareFigures());
  LinkModel links(figures, kMesh, std::nullopt);
  Roofline roofline = roofline_of(total, *collectives, links);
  if (!(roofline.seconds() >= 0)) std::abort();
  StepCosts costs(*executions, cost, *collectives, &links);
  SimulatedSchedule simulated = simulate_schedule(costs, *collectives, roofline);
  (void)timeline_of(costs, &simulated, nullptr);
  (void)group_collectives(*collectives);
}

}  // namespace
}  // namespace meshard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  meshard::explain_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
