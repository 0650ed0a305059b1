// The part of a tensor that each device of a sharding holds.
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/sharding/sharding.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kDevices = 65536;

// Microseconds of one f(i), from `times` consecutive calls; the minimum of several turns.
template <class F>
double slice_time(int times, F&& f) {
  Least least;
  for (int turn = 0; turn <= 40; ++turn) {
    double begin = now();
    for (int i = 0; i < times; ++i) f(i);
    double time = (now() - begin) / times;
    if (turn > 0) least.take(time);
  }
  return least.value;
}

}  // namespace

void slices_rows(Report& report) {
  Mesh mesh({{"data", 256}, {"model", 256}});
  Sharding both(mesh, P("data", "model"), 2), uneven(mesh, P(AxisList{"data", "model"}), 2);
  const IntVector dims{16384, 16384}, odd{100003, 7};
  volatile std::int64_t kept = 0;
  auto add = [&](const char* name, const char* work, const char* unit, double ours, double bound,
                 const char* goal) {
    report.add(
        {.name = name, .work = work, .unit = unit, .ours = ours, .goal = goal, .bound = bound});
  };
  auto all = [&](const Sharding& sharding, const IntVector& sizes) {
    return slice_time(1, [&](int) { kept = sharding.slices(sizes)[kDevices / 2][0].start; }) / 1e3;
  };
  add("slices.all", "slices of all 65,536 devices, split 256x256", "ms", all(both, dims), 1,
      "under 1 ms");
  add("slices.all.uneven", "the same, 100,003 rows split over all devices", "ms", all(uneven, odd),
      1, "under 1 ms");
  auto one = [&](const Sharding& sharding, const IntVector& sizes) {
    return slice_time(2000, [&](int i) { kept = sharding.slice(sizes, 31 * i)[0].start; });
  };
  add("slices.one", "the slice of one device, split 256x256", "us", one(both, dims), 0.1,
      "under 0.1 us");
  add("slices.one.uneven", "the same, 100,003 rows split over all devices", "us", one(uneven, odd),
      0.1, "under 0.1 us");
}

}  // namespace meshard::bench
