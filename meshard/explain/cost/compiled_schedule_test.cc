// Schedules of modules that JAX compiled for TPUs (tests/golden/compiled).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/base/gunzip.h"
#include "meshard/base/whole_file.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/custom_call_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/hlo/executions.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

struct Compiled4x4 {
  HloModule module;
  ModuleIndex index;
  Executions executions;
  std::vector<CustomCall> calls;
  ModuleCost cost;
  std::vector<Collective> collectives;
  Mesh mesh{{{"data", 4}, {"model", 4}}};
  Topology topology = tpu_topology("v5e:4x4").value();
  LinkModel links{hardware_figures(topology).value(), mesh, topology};
  StepCosts costs;
  Roofline bound;
  SimulatedSchedule simulated;
  explicit Compiled4x4(const std::string& name)
      : module(read(name)),
        index(module),
        executions(Executions::of(index).value()),
        calls(custom_calls_of(executions)),
        cost(executions, calls),
        collectives(collectives_on_links(
            executions, find_collectives(executions, mesh_of(), nullptr).value(), calls)),
        costs(executions, cost, collectives, &links),
        bound(roofline_of(program_cost(cost), collectives, links)),
        simulated(simulate_schedule(costs, collectives, bound)) {}

  static Mesh mesh_of() { return Mesh({{"data", 4}, {"model", 4}}); }
  static HloModule read(const std::string& name) {
    std::string path = MESHARD_GOLDEN "/compiled/" + name + ".hlo.pb.gz";
    return HloModule::from_bytes(gunzip(read_whole_file(path).value()).value()).value();
  }
};

TEST(CompiledSchedule, TrainingStepHidesItsGathers) {
  Compiled4x4 made("fsdp_scan");
  const Schedule& schedule = made.simulated.schedule;
  EXPECT_NEAR(schedule.seconds, schedule.busy_seconds + schedule.links.exposed_seconds, 1e-12);
  EXPECT_GE(schedule.seconds, made.bound.seconds());
  double total = 0, hidden = 0, exposed = 0;
  for (const Collective& one : made.collectives)
    total += static_cast<double>(one.executions) * made.links.seconds(one);
  for (const CommunicationTime& one : schedule.communication) {
    hidden += one.time.hidden_seconds;
    exposed += one.time.exposed_seconds;
  }
  EXPECT_NEAR(hidden + exposed, total, 1e-9 * total);
  // The asynchronous all-gather of a layer's second weight, bf16[2048,4096] over "data", in the
  // forward loop: its line takes 3/4 of 16 MiB over one link of 50 GB/s, 252 us. The product behind
  // it has 2 * 512 * 4096 * 2048 operations, 44 us at 197 Tflop/s, which it hides.
  bool found = false;
  for (const TimelineEntry& entry : timeline_of(made.costs, &made.simulated, nullptr))
    if (entry.instruction == "async-collective-start") {
      found = true;
      EXPECT_NEAR(entry.hidden_seconds + entry.exposed_seconds, 0.75 * (16 << 20) / 50e9, 1e-9);
      EXPECT_GE(entry.hidden_seconds, 2.0 * 512 * 4096 * 2048 / 197e12);
      EXPECT_GT(entry.exposed_seconds, 0);
    }
  EXPECT_TRUE(found);
}

TEST(CompiledSchedule, OffloadedStateGoesOverTheHostsLink) {
  Compiled4x4 made("host_offload");
  HostTransfers moved = host_transfers_of(made.costs);
  // As JAX's memory_analysis() says: 16 MiB of arguments, and 16 MiB of results.
  EXPECT_EQ(moved.from_host, 16777216);
  EXPECT_EQ(moved.to_host, 16777216);
  EXPECT_EQ(moved.executions, 2);
  EXPECT_DOUBLE_EQ(moved.seconds, 16777216 / 15e9);
  // Nothing runs beside the copies.
  EXPECT_DOUBLE_EQ(made.simulated.schedule.host.exposed_seconds, 2 * 16777216 / 15e9);
  EXPECT_DOUBLE_EQ(made.simulated.schedule.host.hidden_seconds, 0);
}

TEST(CompiledSchedule, PallasKernelsStateTheirCosts) {
  Compiled4x4 made("pallas_kernels");
  std::vector<CustomCallUse> uses = group_custom_calls(made.executions, made.calls, nullptr);
  ASSERT_EQ(uses.size(), 3u);
  std::sort(uses.begin(), uses.end(),
            [](const CustomCallUse& a, const CustomCallUse& b) { return a.name < b.name; });
  EXPECT_EQ(uses[0].name, "TopK");
  EXPECT_EQ(uses[0].source, CustomCallSource::kUnknown);
  EXPECT_EQ(uses[1].name, "mymm");
  EXPECT_EQ(uses[1].flops, 536870912);
  EXPECT_EQ(uses[1].memory_bytes, 5242880);
  EXPECT_EQ(uses[2].name, "shard_map");
  EXPECT_TRUE(uses[2].communicates);
  EXPECT_NEAR(made.bound.compute_seconds, 536870912 / 197e12, 1e-12);
  EXPECT_THAT(custom_call_notes(uses), testing::SizeIs(2));
}

}  // namespace
}  // namespace meshard
