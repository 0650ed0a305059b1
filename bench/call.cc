// Compares calls of compiled programs with calls of the same module through the C API.
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

// Many, because the threads of 8 devices share the cores: a turn's time varies by half.
constexpr int kCallTurns = 40;

// A turn has several rounds of calls, which take 0.05 to 0.1 s together: a turn finds the caches
// and the heap as the other side has left them, which costs ours 15 % if it has 8 calls of 200
// parameters, and nothing if it is long.
constexpr int kRound = 24;  // fewer than the 32 launches that the CPU plugin allows in flight
int rounds_of_turn(int parameters) { return parameters >= 200 ? 4 : parameters >= 20 ? 15 : 30; }

Tensor matmul_of(Tensor x, Tensor w) { return matmul(x, w); }

std::vector<Tensor> halve_and_add(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

Tensor ones_on(Shape shape, const Mesh& mesh, const PartitionSpec& spec) {
  return mark_sharding(from_host(HostArray::full<float>(std::move(shape), 1.0f)), mesh, spec);
}

Row call_row(std::string name, std::string work, OursAndFloor times, double allowed) {
  return {.name = std::move(name),
          .work = std::move(work),
          .unit = "us",
          .ours = times.ours,
          .floor = times.floor,
          .floor_name = "the same module through the C API",
          .goal = allowed == 1.05 ? "at most 1.05 times" : "at most 1.10 times",
          .bound = allowed * times.floor};
}

void matmul_row(Report& report) {
  Mesh mesh({{"tp", 8}});
  Tensor x = ones_on({8, 64}, mesh, P()), w = ones_on({64, 64}, mesh, P(none, "tp"));
  auto step = jit(&matmul_of, {.name = "matmul"});
  wait_for(step(x, w));
  std::vector<Tensor> arguments{x, w};
  RawProgram raw(raw_runtime_client(), module_of(step), 8, shard_shapes(arguments));
  constexpr int kCalls = 100;
  OursAndFloor times = in_turns(
      kCallTurns,
      [&] {
        double begin = now();
        for (int i = 0; i < kCalls; ++i) wait_for(step(x, w));
        return (now() - begin) / kCalls;
      },
      [&] {
        double begin = now();
        for (int i = 0; i < kCalls; ++i) {
          raw.launch();
          raw.await();
          raw.free_outputs();
        }
        return (now() - begin) / kCalls;
      });
  report.add(call_row("call.matmul", "tiny matmul, weight split over 8 devices, call and wait",
                      times, 1.05));
}

// Calls, each with the results of the previous one. Waits after each call, or only at the end of a
// round.
void parameter_row(Report& report, int count, bool donate, bool chained) {
  Mesh mesh({{"tp", 8}});
  std::vector<Tensor> state;
  for (int i = 0; i < count; ++i) state.push_back(ones_on({8, 8}, mesh, P("tp")));
  JitOptions options{.name = "parameters"};
  if (donate) options.donate = {0};
  auto step = jit(&halve_and_add, options);
  state = step(state);
  wait_for(state.back());
  RawProgram raw(raw_runtime_client(), module_of(step), 8, shard_shapes(state));
  const int calls = kRound * rounds_of_turn(count);
  OursAndFloor times = in_turns(
      kCallTurns,
      [&] {
        double begin = now();
        for (int i = 1; i <= calls; ++i) {
          std::vector<Tensor> next = step(state);
          if (!chained || i % kRound == 0) wait_for(next.back());
          state = std::move(next);
        }
        return (now() - begin) / calls;
      },
      [&] {
        double begin = now();
        for (int i = 1; i <= calls; ++i) {
          bool wait = !chained || i % kRound == 0;
          raw.launch(wait);
          if (wait) raw.await();
          raw.outputs_become_arguments();
        }
        return (now() - begin) / calls;
      });
  std::string name = "call.params" + std::to_string(count) + (donate ? ".donated" : "") +
                     (chained ? ".chained" : "");
  std::string work = std::to_string(count) + " parameters on 8 devices" +
                     (donate ? ", donated" : "") +
                     (chained ? ", calls in a row without waiting" : ", call and wait");
  report.add(call_row(name, work, times, count >= 200 ? 1.10 : 1.05));
}

}  // namespace

void call_rows(Report& report) {
  matmul_row(report);
  for (int count : {2, 20, 200})
    for (bool donate : {false, true})
      for (bool chained : {false, true}) parameter_row(report, count, donate, chained);
}

namespace {

OursAndFloor single_times() {
  Mesh mesh({{"one", 1}});
  Tensor x = ones_on({8, 64}, mesh, P()), w = ones_on({64, 64}, mesh, P());
  auto step = jit(&matmul_of, {.name = "matmul"});
  wait_for(step(x, w));
  std::vector<Tensor> arguments{x, w};
  RawProgram raw(raw_runtime_client(), module_of(step), 1, shard_shapes(arguments));
  // A turn takes 1 ms: the minimum needs one without an interruption.
  constexpr int kCalls = 40, kTurns = 400;
  return in_turns(
      kTurns,
      [&] {
        double time = 0;
        for (int i = 0; i < kCalls; ++i) {
          double begin = now();
          Tensor y = step(x, w);
          time += now() - begin;
          wait_for(y);
        }
        return time / kCalls;
      },
      [&] {
        double time = 0;
        for (int i = 0; i < kCalls; ++i) {
          double begin = now();
          raw.launch();
          time += now() - begin;
          raw.await();
          raw.free_outputs();
        }
        return time / kCalls;
      });
}

}  // namespace

void single_rows(Report& report) {
  // The addresses of the programs decide about 0.3 us of either side.
  Least ours, floor;
  for (int i = 0; i < 4; ++i) {
    OursAndFloor times = single_times();
    ours.take(times.ours);
    floor.take(times.floor);
  }
  Row row = call_row("single.matmul", "tiny matmul on one device, until the call returns",
                     {ours.value, floor.value}, 1.05);
  row.goal = "at most 0.5 us more";
  row.bound = floor.value + 0.5;
  report.add(row);
}

}  // namespace meshard::bench
