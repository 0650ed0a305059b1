// Jitted calls with up to 10,000 arguments, on 8 devices.
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/scale/curve.h"
#include "meshard/lowering/lower.h"

namespace meshard::bench {
namespace {

constexpr int kArgumentCounts[] = {100, 1000, 10000};

std::vector<Tensor> scaled(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

struct ArgumentTimes {
  double compile = 0, call = 0, raw = 0, place = 0;
};

// Placed.
std::vector<Tensor> arguments_of(int count) {
  Mesh mesh({{"tp", 8}});
  HostArray host = HostArray::full<float>({8, 8}, 1.0f);
  std::vector<Tensor> state;
  for (int i = 0; i < count; ++i) state.push_back(mark_sharding(from_host(host), mesh, P("tp")));
  return state;
}

Program program_of(const std::vector<Tensor>& arguments) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& each : arguments) pointers.push_back(&each);
  Program program;
  program.graph = internal::trace_function(
      pointers,
      [](std::span<const Tensor> given) {
        return scaled({given.begin(), given.end()});
      },
      SourceLocation::current());
  return program;
}

// The first compile in a process makes the compiler's memory, many GB for 10,000 arguments: each
// side has a process of its own. The C library returns freed memory to the system and asks for it
// again, or not, as the heap happens to look, which is up to half of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

double time_of_raw_compile(int count) {
  std::vector<Tensor> state = arguments_of(count);
  for (const Tensor& each : state) wait_for(each);
  std::string text = lower(program_of(state)).text;
  RawClient client = raw_runtime_client();
  return milliseconds_of([&] { RawProgram raw(client, text, 8, shard_shapes(state)); });
}

// The times of tracing for each of kArgumentCounts, and then those of lowering.
std::vector<double> times_before_compiling() {
  std::map<int, std::vector<Tensor>> arguments;
  std::map<int, Program> programs;
  for (int count : kArgumentCounts) {
    arguments[count] = arguments_of(count);
    for (const Tensor& each : arguments[count]) wait_for(each);
    programs[count] = program_of(arguments[count]);
  }
  auto turns = [](int count) { return count > 1000 ? 15 : 60; };
  std::vector<double> times = least_of_sizes(kArgumentCounts, turns, [&](int count) {
    return milliseconds_of([&] { program_of(arguments[count]); });
  });
  for (double time : least_of_sizes(kArgumentCounts, turns, [&](int count) {
         return milliseconds_of([&] { lower(programs[count]); });
       }))
    times.push_back(time);
  return times;
}

ArgumentTimes argument_times(int count) {
  ArgumentTimes times;
  std::vector<Tensor> state;
  wait_for(arguments_of(1)[0]);  // the first placement starts the runtime
  times.place = milliseconds_of([&] { state = arguments_of(count); });
  for (const Tensor& each : state) wait_for(each);
  auto step = jit(&scaled, {.name = "arguments"});
  times.compile = milliseconds_of([&] {
    state = step(state);
    wait_for(state.back());
  });
  RawProgram raw(raw_runtime_client(), module_of(step), 8, shard_shapes(state));
  OursAndFloor call = in_turns(
      count > 1000 ? 4 : 15,
      [&] {
        return milliseconds_of([&] {
          std::vector<Tensor> next = step(state);
          wait_for(next.back());
          state = std::move(next);
        });
      },
      [&] {
        return milliseconds_of([&] {
          raw.launch();
          raw.await();
          raw.outputs_become_arguments();
        });
      });
  times.call = call.ours;
  times.raw = call.floor;
  return times;
}

}  // namespace

void argument_curves(Report& report) {
  Curve place{.name = "scale.arguments.place", .work = "place arrays on 8 devices"},
      trace{.name = "scale.arguments.trace", .work = "trace a function of many arguments"},
      lowered{.name = "scale.arguments.lower", .work = "lower it"},
      compile{.name = "scale.arguments.first", .work = "its first call, which compiles it"},
      call{.name = "scale.arguments.call", .work = "a call of it, until its results are there"};
  call.floor_name = "through the C API";
  compile.floor_name = "compile and make the arguments through the C API";
  std::vector<double> before = numbers_of_child([] {
    keep_freed_memory();
    return times_before_compiling();
  });
  if (before.size() != 2 * std::size(kArgumentCounts))
    throw std::runtime_error("a measurement failed");
  for (std::size_t i = 0; i < std::size(kArgumentCounts); ++i) {
    const double size = kArgumentCounts[i];
    trace.points.push_back({size, before[i]});
    lowered.points.push_back({size, before[std::size(kArgumentCounts) + i]});
  }
  for (int count : kArgumentCounts) {
    // Before and after ours: memory that a virtual machine was not given yet takes longer to touch.
    auto time_raw = [&] {
      return numbers_of_child([&] {
        keep_freed_memory();
        return std::vector<double>{time_of_raw_compile(count)};
      });
    };
    std::vector<double> raw = time_raw();
    std::vector<double> ours = numbers_of_child([&] {
      keep_freed_memory();
      ArgumentTimes t = argument_times(count);
      return std::vector<double>{t.compile, t.call, t.raw, t.place};
    });
    std::vector<double> raw_again = time_raw();
    if (ours.size() != 4 || raw.size() != 1 || raw_again.size() != 1)
      throw std::runtime_error("a measurement failed");
    ArgumentTimes times{ours[0], ours[1], ours[2], ours[3]};
    double size = count;
    place.points.push_back({size, times.place});
    compile.points.push_back({size, times.compile, std::min(raw[0], raw_again[0])});
    call.points.push_back({size, times.call, times.raw});
  }
  for (Curve* curve : {&place, &trace, &lowered, &compile, &call}) {
    curve->of = "arguments";
    add_curve(report, *curve);
  }
}

}  // namespace meshard::bench
