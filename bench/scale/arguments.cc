// Jitted calls with up to 10,000 arguments, on 8 devices.
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/scale/curve.h"
#include "meshard/lowering/lower.h"

namespace meshard::bench {
namespace {

std::vector<Tensor> scaled(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

struct ArgumentTimes {
  double trace = 0, lower = 0, compile = 0, call = 0, raw = 0, raw_compile = 0, place = 0;
};

ArgumentTimes argument_times(int count) {
  ArgumentTimes times;
  Mesh mesh({{"tp", 8}});
  HostArray host = HostArray::full<float>({8, 8}, 1.0f);
  std::vector<Tensor> state;
  times.place = milliseconds_of([&] {
    for (int i = 0; i < count; ++i) state.push_back(mark_sharding(from_host(host), mesh, P("tp")));
  });
  for (const Tensor& each : state) wait_for(each);
  std::vector<const Tensor*> pointers;
  for (const Tensor& each : state) pointers.push_back(&each);
  Program program;
  times.trace = least_of(3, [&] {
    return milliseconds_of([&] {
      program.graph = internal::trace_function(
          pointers,
          [](std::span<const Tensor> given) {
            return scaled({given.begin(), given.end()});
          },
          SourceLocation::current());
    });
  });
  times.lower = least_of(3, [&] { return milliseconds_of([&] { lower(program); }); });
  auto step = jit(&scaled, {.name = "arguments"});
  times.compile = milliseconds_of([&] {
    state = step(state);
    wait_for(state.back());
  });
  double begin = now();
  RawProgram raw(raw_runtime_client(), module_of(step), 8, shard_shapes(state));
  times.raw_compile = (now() - begin) / 1e3;
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
  argument_times(10);  // the first placement starts the runtime
  for (int count : {100, 1000, 10000}) {
    ArgumentTimes times = argument_times(count);
    double size = count;
    place.points.push_back({size, times.place});
    trace.points.push_back({size, times.trace});
    lowered.points.push_back({size, times.lower});
    compile.points.push_back({size, times.compile, times.raw_compile});
    call.points.push_back({size, times.call, times.raw});
  }
  for (Curve* curve : {&place, &trace, &lowered, &compile, &call}) {
    curve->of = "arguments";
    add_curve(report, *curve);
  }
}

}  // namespace meshard::bench
