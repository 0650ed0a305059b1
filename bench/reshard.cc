// Changes the sharding of an array on its devices: 256 MB of f32 on 8 devices, rows to columns.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "bench/large_matrix.h"
#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/base/cat.h"

namespace meshard::bench {
namespace {

struct Resharded {
  double time;
  std::int64_t peak;
};

// `reshard` returns the array with its new sharding.
template <class Reshard>
Resharded reshard_once(Reshard&& reshard) {
  std::int64_t resident = memory("VmRSS");
  reset_peak_memory();
  double begin = now();
  Tensor moved = reshard();
  wait_for(moved);
  double time = now() - begin;
  return {time, memory("VmHWM") - resident};
}

struct Floor {
  std::string name;
  std::function<double()> microseconds;
};

// `jax`: the GB/s of JAX's best run.
template <class Reshard>
void reshard_row(Report& report, std::string name, std::string work, double jax, Reshard&& reshard,
                 const Floor& allowed) {
  std::int64_t peak = 0;
  RuntimeCounters before = runtime_counters();
  auto [ours, floor] = in_turns(
      6,
      [&] {
        Resharded done = reshard_once(reshard);
        peak = std::max(peak, done.peak);
        return done.time;
      },
      allowed.microseconds);
  RuntimeCounters done = runtime_counters() - before;
  char note[120];
  std::snprintf(note, sizeof note, "memory grew by %lld MB, %lld bytes through the host",
                static_cast<long long>(peak >> 20), static_cast<long long>(done.bytes_read));
  report.add({.name = std::move(name),
              .work = std::move(work),
              .unit = "GB/s",
              .ours = gigabytes_per_second(ours),
              .floor = gigabytes_per_second(floor),
              .floor_name = allowed.name,
              .goal = cat("at least ", jax, ", JAX's best"),
              .bound = jax,
              .higher_is_better = true,
              .also = done.bytes_read == 0,
              .note = note});
}

}  // namespace

void reshard_rows(Report& report) {
  HostArray array = large_matrix();
  Mesh mesh({{"x", 8}});
  Tensor rows = mark_sharding(from_host(array), mesh, P("x", none));
  wait_for(rows);
  reshard_row(
      report, "reshard.columns", "256 MB on 8 devices, rows to columns", 2.8,
      [&] { return transfer(rows, mesh, P(none, "x")); },
      {"memcpy to fresh huge pages", [&] { return copy_to_fresh_pages(array.bytes(), 1); }});
  auto columns = jit([&](Tensor x) { return mark_sharding(x, mesh, P(none, "x")); });
  wait_for(columns(rows));
  RawProgram raw(raw_runtime_client(), module_of(columns), 8, shard_shapes({&rows, 1}));
  auto launch_raw = [&] {
    double begin = now();
    raw.launch();
    raw.await();
    double time = now() - begin;
    raw.free_outputs();
    return time;
  };
  reshard_row(report, "reshard.columns.jit", "the same in a jitted function", 1.04,
              [&] { return columns(rows); }, {"the same module through the C API", launch_raw});
}

}  // namespace meshard::bench
