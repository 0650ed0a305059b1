#include "meshard/explain/cost/schedule.h"

#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/cost/custom_call_use.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

// 1 Mflop, 1 MB of memory and of links, and 0.1 MB of the host's memory in a second.
HardwareFigures schedule_figures() {
  HardwareFigures figures;
  figures.matrix_rates = {{"f32", 1e6}};
  figures.memory_bandwidth = 1e6;
  figures.link_bandwidth = 1e6;
  figures.links = 1;
  figures.link_name = "link";
  figures.host_bandwidth = 1e5;
  return figures;
}

const Mesh kScheduleMesh({{"x", 4}, {"y", 2}});

HloShape in_space(HloShape shape, std::int64_t space) {
  shape.layout.emplace().memory_space = space;
  return shape;
}

// A tensor of 250 * n bytes that is on the chip, so that it causes no memory traffic.
HloShape on_chip(std::int64_t rows) { return in_space(f32_shape({rows, 125, 500}), 1); }

// A matrix product of `seconds` seconds: [500 * seconds, 1000] x [1000, 1].
HloInstruction product(std::int64_t id, std::int64_t of, std::int64_t seconds) {
  HloInstruction dot =
      make_instruction(id, "dot", in_space(f32_shape({500 * seconds, 1}), 1), {of, of});
  dot.dot = HloDotDimensions{{1}, {0}, {}, {}};
  return dot;
}

// The operand of the products.
HloInstruction operand_of_products(std::int64_t id) {
  return make_parameter(id, 0, in_space(f32_shape({1, 1000}), 1));
}

const std::vector<std::vector<std::int64_t>> kAlongX{{0, 2, 4, 6}, {1, 3, 5, 7}};
const std::vector<std::vector<std::int64_t>> kAlongY{{0, 1}, {2, 3}, {4, 5}, {6, 7}};

// The start of an all-gather of 1 MB over 4 devices, which takes 3/4 of a second for each MB.
HloInstruction gather_start(std::int64_t id, std::int64_t of, std::int64_t megabytes) {
  HloShape whole = in_space(f32_shape({megabytes, 250, 1000}), 1);
  return make_collective(id, "all-gather-start", tuple_shape({whole, whole}), {of}, "", kAlongX);
}

struct Scheduled {
  HloModule module;
  ModuleIndex index;
  Executions executions;
  std::vector<CustomCall> calls;
  ModuleCost cost;
  std::vector<Collective> collectives;
  LinkModel links;
  StepCosts costs;
  Roofline bound;
  SimulatedSchedule simulated;
  explicit Scheduled(HloModule of, std::vector<GivenCost> given = {},
                     HardwareFigures figures = schedule_figures(),
                     const std::optional<Topology>& topology = std::nullopt)
      : module(std::move(of)),
        index(module),
        executions(Executions::of(index).value()),
        calls(custom_calls_of(executions)),
        cost((give_costs(given, calls).value(), executions), calls),
        collectives(collectives_on_links(
            executions, find_collectives(executions, kScheduleMesh, nullptr).value(), calls)),
        links(std::move(figures), kScheduleMesh, topology),
        costs(executions, cost, collectives, &links),
        bound(roofline_of(program_cost(cost), collectives, links)),
        simulated(simulate_schedule(costs, collectives, bound)) {}
  const Schedule& schedule() const { return simulated.schedule; }
};

// What holds for every schedule.
void expect_consistent(const Scheduled& made) {
  const Schedule& schedule = made.schedule();
  EXPECT_NEAR(
      schedule.seconds,
      schedule.busy_seconds + schedule.links.exposed_seconds + schedule.host.exposed_seconds, 1e-9);
  EXPECT_GE(schedule.seconds, made.bound.seconds() - 1e-9);
  std::map<std::string, double> total;  // by axes
  for (const Collective& one : made.collectives)
    total[std::string(to_string(one.kind)) + join(*one.axes, ", ")] +=
        static_cast<double>(one.executions) * made.links.seconds(one);
  for (const CommunicationTime& one : schedule.communication) {
    EXPECT_NEAR(one.time.hidden_seconds + one.time.exposed_seconds, total[one.kind + one.axes],
                1e-9);
    EXPECT_LE(one.time.exposed_seconds, schedule.links.exposed_seconds + 1e-9);
  }
}

TEST(Schedule, AnAsynchronousCollectiveHidesBehindComputation) {
  // The gather of 4 MB takes 3 s: 2 of them behind the product, 1 exposed. The next product takes
  // 4 s.
  Scheduled made(
      make_module({{operand_of_products(1), gather_start(2, 1, 4), product(3, 1, 2),
                    make_instruction(4, "all-gather-done", on_chip(16), {2}), product(5, 1, 4)}}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 7);
  EXPECT_DOUBLE_EQ(made.schedule().busy_seconds, 6);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 1);
  ASSERT_EQ(made.schedule().communication.size(), 1u);
  EXPECT_EQ(made.schedule().communication[0].kind, "all-gather");
  EXPECT_EQ(made.schedule().communication[0].axes, "\"x\"");
  expect_consistent(made);
  // The timeline says it at the start.
  std::vector<TimelineEntry> timeline = timeline_of(made.costs, &made.simulated, nullptr);
  ASSERT_EQ(timeline.size(), 3u);
  EXPECT_EQ(timeline[0].instruction, "all-gather-start.2");
  EXPECT_DOUBLE_EQ(timeline[0].hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(timeline[0].exposed_seconds, 1);
}

TEST(Schedule, OtherCollectivesAreExposed) {
  // 4 MB over 4 devices take 3 s. The device then computes for 2 s.
  HloShape whole = in_space(f32_shape({4, 250, 1000}), 1);
  Scheduled made(
      make_module({{operand_of_products(1),
                    make_collective(2, "all-gather", whole, {1}, "", kAlongX), product(3, 1, 2)}}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 5);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 0);
  expect_consistent(made);
}

// Two gathers of 4 MB over x, and one of 2 MB over y, behind a product of 1 s.
HloModule three_gathers() {
  HloShape whole = in_space(f32_shape({2, 250, 1000}), 1);
  HloInstruction along_y =
      make_collective(4, "all-gather-start", tuple_shape({whole, whole}), {1}, "", kAlongY);
  return make_module(
      {{operand_of_products(1), gather_start(2, 1, 4), gather_start(3, 1, 4), along_y,
        product(5, 1, 1), make_instruction(6, "all-gather-done", on_chip(16), {4}),
        make_instruction(7, "all-gather-done", on_chip(16), {2}),
        make_instruction(8, "all-gather-done", on_chip(16), {3})}});
}

TEST(Schedule, CollectivesOverTheSameLinksQueue) {
  // A device sends 3, 3 and 1 MB over the same links: the gather over y ends last.
  Scheduled made(three_gathers());
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 7);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 6);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 1);
  expect_consistent(made);
}

TEST(Schedule, CollectivesOverOtherLinksRunAtTheSameTime) {
  // A ring of 4 chips in x, two in y; each link 1 MB/s. A gather over x takes 3/8 of 4 MB on two
  // links each: 1.5 s. That over y takes half of 2 MB: 1 s, at the same time as the first over x.
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < 8; ++i) devices.push_back({.id = i, .coords = {i / 2, i % 2}});
  HardwareFigures figures = schedule_figures();
  figures.links = 4;
  figures.link_bandwidth = 4e6;
  Scheduled made(three_gathers(), {}, figures, Topology(devices, Topology::Wrap{true, false}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 2);  // 1 s of the first, and that over y
  ASSERT_EQ(made.schedule().communication.size(), 2u);
  EXPECT_DOUBLE_EQ(made.schedule().communication[0].time.exposed_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().communication[1].time.exposed_seconds, 0);
  expect_consistent(made);
}

TEST(Schedule, LoopsRepeatAndConditionalsTakeTheLongestBranch) {
  // Each iteration: a gather of 3 s behind a product of 2 s.
  HloInstruction loop = calling(make_instruction(2, "while", on_chip(1), {1}), {1, 2});
  loop.backend_config = R"({"known_trip_count":{"n":"5"}})";
  HloInstruction choice =
      calling(make_instruction(3, "conditional", on_chip(1), {1, 1, 1}), {3, 4});
  HloModule module =
      make_module({{operand_of_products(1), loop, choice},
                   {operand_of_products(11), gather_start(12, 11, 4), product(13, 11, 2),
                    make_instruction(14, "all-gather-done", on_chip(16), {12})},
                   {make_constant(21, 1)},
                   {operand_of_products(31), product(32, 31, 7)},
                   {operand_of_products(41), product(42, 41, 1)}});
  Scheduled made(std::move(module));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 5 * 3 + 7);
  EXPECT_DOUBLE_EQ(made.schedule().busy_seconds, 5 * 2 + 7);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 5 * 2);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 5 * 1);
  expect_consistent(made);
}

TEST(Schedule, ALoopDelaysWhatIsInFlightOnItsLinks) {
  // In flight: a gather of 3 s. The loop computes for 4 s and gathers for 3 s. The links are busy
  // for 6 s, the device computes for 4; both gathers are behind the loop's computation or waited
  // for.
  HloInstruction loop = calling(make_instruction(3, "while", on_chip(1), {1}), {1, 2});
  loop.backend_config = R"({"known_trip_count":{"n":"1"}})";
  HloShape whole = in_space(f32_shape({4, 250, 1000}), 1);
  Scheduled made(make_module({{operand_of_products(1), gather_start(2, 1, 4), loop,
                               make_instruction(4, "all-gather-done", on_chip(16), {2})},
                              {operand_of_products(11), product(12, 11, 4),
                               make_collective(13, "all-gather", whole, {11}, "", kAlongX)},
                              {make_constant(21, 1)}}));
  EXPECT_GE(made.schedule().seconds, 6);
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 7);
  EXPECT_DOUBLE_EQ(made.schedule().busy_seconds, 4);
  expect_consistent(made);
}

// As TPU compilers write it: a start fusion, a fusion that goes on with the collective, a done
// fusion, all with the same channel.
TEST(Schedule, CollectivesThatAreSpreadOverFusions) {
  HloShape whole = in_space(f32_shape({4, 250, 1000}), 1);
  auto piece = [&](std::int64_t id) {
    HloInstruction one = make_collective(id, "all-gather", whole, {id - 1}, "", kAlongX);
    one.channel_id = 7;
    one.frontend_attributes = {{"chain_id", "0"}};
    return one;
  };
  auto marked = [&](std::int64_t id, const char* target) {
    HloInstruction one = make_instruction(id, "custom-call", whole, {id - 1});
    one.custom_call_target = target;
    return one;
  };
  HloModule module =
      make_module({{operand_of_products(1), calling(make_instruction(2, "fusion", whole, {1}), {1}),
                    calling(make_instruction(3, "fusion", whole, {2}), {2}), product(4, 1, 1),
                    calling(make_instruction(5, "fusion", whole, {3}), {3})},
                   {operand_of_products(11), piece(12), marked(13, "AsyncCollectiveStart")},
                   {operand_of_products(21), piece(22), product(23, 21, 1)},
                   {operand_of_products(31), piece(32), marked(33, "AsyncCollectiveDone")}});
  Scheduled made(std::move(module));
  // 3 s, of which a fusion and a product hide 2.
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 1);
  EXPECT_TRUE(made.calls.empty());
}

TEST(Schedule, AFusionWithAProductHidesItsCollective) {
  HloShape whole = in_space(f32_shape({4, 250, 1000}), 1);
  Scheduled made(make_module(
      {{operand_of_products(1), calling(make_instruction(2, "fusion", whole, {1}), {1})},
       {operand_of_products(11), product(12, 11, 2),
        make_collective(13, "all-gather", whole, {11}, "", kAlongX)}}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 1);
  expect_consistent(made);
}

TEST(Schedule, CopiesQueueForTheMemory) {
  // The copy moves 2 MB into the chip: 2 s of memory. The product needs none for 1 s, the negation
  // all of it for 1 s (0.5 MB in, 0.5 MB out). The rest of the copy, 1 s, is waited for.
  HloShape source = f32_shape({2, 250, 1000});
  HloInstruction copy = make_instruction(
      3, "copy-start", tuple_shape({in_space(source, 1), source, in_space(s32_scalar(), 2)}), {2});
  HloShape half = f32_shape({125, 1000});
  Scheduled made(
      make_module({{operand_of_products(1), make_parameter(2, 1, source), copy, product(4, 1, 1),
                    make_parameter(5, 2, half), make_instruction(6, "negate", half, {5}),
                    make_instruction(7, "copy-done", in_space(source, 1), {3})}}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().busy_seconds, 3);
  expect_consistent(made);
}

TEST(Schedule, HostTransfersRunOverTheirOwnLink) {
  // 0.2 MB from the host take 2 s, 1 of them behind the product; 0.1 MB to it take 1 s, waited for
  // at the end.
  HloShape host = in_space(f32_shape({50, 1000}), 5), device = in_space(f32_shape({50, 1000}), 1);
  HloShape half = in_space(f32_shape({25, 1000}), 5);
  HloInstruction in = make_instruction(3, "copy-start",
                                       tuple_shape({device, host, in_space(s32_scalar(), 2)}), {2});
  HloInstruction out = make_instruction(
      6, "copy-start", tuple_shape({half, in_space(half, 1), in_space(s32_scalar(), 2)}), {5});
  Scheduled made(
      make_module({{operand_of_products(1), make_parameter(2, 1, host), in, product(4, 1, 1),
                    make_instruction(5, "copy-done", in_space(half, 1), {3}), out,
                    make_instruction(7, "copy-done", half, {6})}}));
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().host.exposed_seconds, 2);
  EXPECT_DOUBLE_EQ(made.schedule().host.hidden_seconds, 1);
  EXPECT_DOUBLE_EQ(made.schedule().links.exposed_seconds, 0);
  HostTransfers moved = host_transfers_of(made.costs);
  EXPECT_DOUBLE_EQ(moved.from_host, 2e5);
  EXPECT_DOUBLE_EQ(moved.to_host, 1e5);
  EXPECT_EQ(moved.executions, 2);
  EXPECT_DOUBLE_EQ(moved.seconds, 2);  // both directions at the same time
  EXPECT_EQ(
      moved.to_string(),
      "host memory: 195.3 KiB from the host and 97.7 KiB to it in 2 transfers a run, about 2 s");
  expect_consistent(made);
}

// TPU compilers write a reduce-scatter as an all-reduce and a slice in a fusion.
TEST(Schedule, AnAllReduceOfWhichAPartIsKeptIsAReduceScatter) {
  HloShape whole = in_space(f32_shape({4, 250, 1000}), 1);
  HloShape part = in_space(f32_shape({1, 250, 1000}), 1);
  auto module = [&](HloShape kept) {
    return make_module(
        {{operand_of_products(1), calling(make_instruction(2, "fusion", kept, {1}), {1})},
         {make_parameter(11, 0, whole), make_collective(12, "all-reduce", whole, {11}, "", kAlongX),
          make_instruction(13, "bitcast", whole, {12}), make_constant(14, 0),
          make_instruction(15, "dynamic-slice", kept, {13, 14, 14, 14})}});
  };
  EXPECT_DOUBLE_EQ(Scheduled(module(part)).schedule().links.exposed_seconds, 3);   // 3/4 of 4 MB
  EXPECT_DOUBLE_EQ(Scheduled(module(whole)).schedule().links.exposed_seconds, 6);  // twice that
}

TEST(Schedule, CustomCallsTakeTheTimeThatIsGiven) {
  HloShape shape = in_space(f32_shape({1, 1000}), 1);
  HloInstruction call = make_instruction(2, "custom-call", shape, {1});
  call.custom_call_target = "my_kernel";
  HloModule module = make_module({{operand_of_products(1), call}});
  EXPECT_DOUBLE_EQ(Scheduled(module).schedule().seconds, 0);
  Scheduled made(module, {GivenCost::parse("my_kernel=3e6,1MB,2MB").value()});
  // 3 s of products, and 2 s of links behind them.
  EXPECT_DOUBLE_EQ(made.schedule().seconds, 3);
  EXPECT_DOUBLE_EQ(made.schedule().links.hidden_seconds, 2);
  EXPECT_DOUBLE_EQ(made.bound.compute_seconds, 3);
  EXPECT_DOUBLE_EQ(made.bound.memory_seconds, 1);
  EXPECT_DOUBLE_EQ(made.bound.link_seconds(), 2);
  ASSERT_EQ(made.schedule().communication.size(), 1u);
  EXPECT_EQ(made.schedule().communication[0].kind, "custom call");
}

}  // namespace
}  // namespace meshard
