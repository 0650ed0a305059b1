// Changes the sharding of an array on its devices: 256 MB of f32 on 8 devices, rows to columns.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "bench/large_matrix.h"
#include "bench/on_devices.h"
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

// `jax`: the GB/s of JAX's best run.
template <class Reshard>
void reshard_row(Report& report, std::string name, std::string work, const HostArray& array,
                 double jax, Reshard&& reshard) {
  std::int64_t peak = 0;
  RuntimeCounters before = runtime_counters();
  auto [ours, floor] = in_turns(
      6,
      [&] {
        Resharded done = reshard_once(reshard);
        peak = std::max(peak, done.peak);
        return done.time;
      },
      [&] { return copy_to_fresh_pages(array.bytes(), 1); });
  RuntimeCounters done = runtime_counters() - before;
  char note[120];
  std::snprintf(note, sizeof note, "memory grew by %lld MB, %lld bytes through the host",
                static_cast<long long>(peak >> 20), static_cast<long long>(done.bytes_read));
  report.add({.name = std::move(name),
              .work = std::move(work),
              .unit = "GB/s",
              .ours = gigabytes_per_second(ours),
              .floor = gigabytes_per_second(floor),
              .floor_name = "memcpy to fresh huge pages",
              .goal = cat("at least ", jax, ", JAX's best"),
              .bound = jax,
              .higher_is_better = true,
              .also = done.bytes_read == 0,
              .note = note});
}

}  // namespace

void reshard_rows(Report& report) {
  HostArray array = HostArray::uninitialized({DType::f32, {kSide, kSide}});
  std::span<float> values = array.mutable_data<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i & 1023);
  Mesh mesh({{"x", 8}});
  Tensor rows = mark_sharding(from_host(array), mesh, P("x", none));
  wait_for(rows);
  reshard_row(report, "reshard.columns", "256 MB on 8 devices, rows to columns", array, 2.8,
              [&] { return transfer(rows, mesh, P(none, "x")); });
  auto columns = jit([&](Tensor x) { return mark_sharding(x, mesh, P(none, "x")); });
  reshard_row(report, "reshard.columns.jit", "the same in a jitted function", array, 1.04,
              [&] { return columns(rows); });
}

}  // namespace meshard::bench
