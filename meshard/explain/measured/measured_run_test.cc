#include "meshard/explain/measured/measured_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Mesh kMeasuredMesh({{"x", 2}});

struct Modeled {
  HloModule module;
  ModuleIndex index;
  Executions executions;
  ModuleCost cost;
  std::vector<Collective> collectives;
  StepCosts costs;
  std::vector<TimelineEntry> timeline;
  explicit Modeled(HloModule of)
      : module(std::move(of)),
        index(module),
        executions(Executions::of(index).value()),
        cost(executions),
        collectives(find_collectives(executions, kMeasuredMesh, nullptr).value()),
        costs(executions, cost, collectives, nullptr),
        timeline(timeline_of(costs, nullptr, nullptr)) {}
};

TraceOp op(const char* name, double start, double seconds, const char* device = "0",
           const char* run = "") {
  return {.op = name,
          .module = "made",
          .device = device,
          .run = run,
          .start = start,
          .seconds = seconds};
}

// negate, then an asynchronous gather with a tanh behind it, then an all-reduce.
HloModule with_collectives() {
  return make_module(
      {{make_parameter(1, 0, f32_shape({4})), make_instruction(2, "negate", f32_shape({4}), {1}),
        make_collective(3, "all-gather-start", tuple_shape({f32_shape({4}), f32_shape({8})}), {2},
                        "", {{0, 1}}),
        make_instruction(4, "tanh", f32_shape({4}), {2}),
        make_instruction(5, "all-gather-done", f32_shape({8}), {3}),
        make_collective(6, "all-reduce", f32_shape({8}), {5}, "", {{0, 1}})}});
}

TEST(MeasuredRun, HiddenAndExposedTimes) {
  Modeled made(with_collectives());
  // negate 0-1, the gather 1-5 with a tanh 2-4, the all-reduce 5-8.
  Result<MeasuredRun> run = measure(
      {op("negate.2", 0, 1),
       op("all-gather-start.3", 1, 0.5),
       op("tanh.4", 2, 2),
       op("all-gather-done.5", 4, 1),
       op("all-reduce.6", 5, 3),
       op("infeed.9", 8, 1),
       {.op = "negate.2", .module = "other", .device = "0", .run = "", .start = 20, .seconds = 1}},
      made.costs, made.collectives, made.timeline);
  ASSERT_TRUE(run.ok()) << run.error().message();
  EXPECT_EQ(run->devices, 1);
  EXPECT_EQ(run->runs, 1);
  EXPECT_DOUBLE_EQ(run->seconds, 8);
  EXPECT_DOUBLE_EQ(run->links.hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(run->links.exposed_seconds, 2 + 3);
  EXPECT_EQ(run->matched_events, 5);
  EXPECT_EQ(run->unmatched_events, 1);
  EXPECT_THAT(run->unmatched, ElementsAre("infeed.9"));
  ASSERT_EQ(run->communication.size(), 2u);
  EXPECT_EQ(run->communication[0], (CommunicationTime{"all-reduce", "\"x\"", 1, 1, {0, 3}}));
  EXPECT_EQ(run->communication[1], (CommunicationTime{"all-gather", "\"x\"", 1, 1, {2, 2}}));
  // negate, all-gather-start, tanh, all-reduce
  ASSERT_EQ(made.timeline.size(), 4u);
  EXPECT_EQ(made.timeline[0].measured_seconds, 1);
  EXPECT_EQ(made.timeline[1].measured_seconds, 4);
  EXPECT_EQ(made.timeline[2].measured_seconds, 2);
  EXPECT_EQ(made.timeline[3].measured_seconds, 3);
  Schedule estimate{.communication = {{"all-reduce", "\"x\"", 1, 1, {0, 0.5}}}};
  EXPECT_EQ(run->to_string(estimate),
            "measured 8 s a run (mean of 1 run on 1 device): 5 s exposed communication (2 s "
            "hidden); 5 events, 1 of other instructions (infeed.9)\n"
            "  all-reduce along \"x\": 3 s exposed, 0 s hidden; estimated 500 ms and 0 s\n"
            "  all-gather along \"x\": 2 s exposed, 2 s hidden");
}

TEST(MeasuredRun, MeansOverDevicesAndRuns) {
  Modeled made(with_collectives());
  std::vector<TraceOp> ops;
  // Two runs on each of two devices; an all-reduce takes 1, 2, 3 and 4 s.
  int number = 0;
  for (const char* device : {"0", "1"})
    for (const char* run : {"a", "b"}) {
      ops.push_back(op("all-reduce.6", 10.0 * number, 1 + number, device, run));
      ++number;
    }
  Result<MeasuredRun> run = measure(ops, made.costs, made.collectives, made.timeline);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->devices, 2);
  EXPECT_EQ(run->runs, 2);
  EXPECT_DOUBLE_EQ(run->seconds, 2.5);
  EXPECT_DOUBLE_EQ(run->links.exposed_seconds, 2.5);
  EXPECT_EQ(made.timeline[3].measured_seconds, 2.5);
  EXPECT_EQ(made.timeline[0].measured_seconds, std::nullopt);
}

TEST(MeasuredRun, LoopsEncloseTheirSteps) {
  HloInstruction loop = calling(make_instruction(2, "while", f32_shape({4}), {1}), {1, 2});
  loop.backend_config = R"({"known_trip_count":{"n":"2"}})";
  Modeled made(make_module(
      {{make_parameter(1, 0, f32_shape({4})), loop},
       {make_parameter(11, 0, f32_shape({4})), make_instruction(12, "tanh", f32_shape({4}), {11})},
       {make_constant(21, 1)}}));
  // Two runs without numbers: four executions of the step, two of the loop.
  Result<MeasuredRun> run =
      measure({op("while.2", 0, 5), op("tanh.12", 0, 2), op("tanh.12", 2, 2), op("while.2", 10, 5),
               op("tanh.12", 10, 2), op("%tanh.12", 12, 2)},
              made.costs, made.collectives, made.timeline);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->runs, 2);
  EXPECT_DOUBLE_EQ(run->seconds, 5);
  EXPECT_EQ(made.timeline[1].instruction, "tanh.12");
  EXPECT_EQ(made.timeline[1].measured_seconds, 2);
}

TEST(MeasuredRun, ATraceOfAnotherProgramIsAnError) {
  Modeled made(with_collectives());
  Result<MeasuredRun> run = measure({{.op = "negate.2",
                                      .module = "jit_other(7)",
                                      .device = "0",
                                      .run = "",
                                      .start = 0,
                                      .seconds = 1}},
                                    made.costs, made.collectives, made.timeline);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message(),
              HasSubstr("no step of the program made; it has steps of jit_other"));
}

}  // namespace
}  // namespace meshard
