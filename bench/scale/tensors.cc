// Up to a million live tensors: on the host, recorded but not computed, and on a device.
#include <unistd.h>

#include <string>
#include <vector>

#include "bench/allocated.h"
#include "bench/on_devices.h"
#include "bench/scale/curve.h"

namespace meshard::bench {
namespace {

struct LiveTimes {
  double make = 0, release = 0, small = 0;
};

// The time of a small lazy computation, in microseconds, while other tensors are alive.
double small_computation(const Tensor& x) {
  return least_of(200, [&] {
    return 1e3 * milliseconds_of([&] {
             Tensor y = x * 2.0f + 1.0f;
             sync(y);
             wait_for(y);
           });
  });
}

template <class Make>
LiveTimes live_times(int count, const Tensor& x, Make&& make) {
  LiveTimes times;
  std::vector<Tensor> alive;
  alive.reserve(static_cast<std::size_t>(count));
  times.make = milliseconds_of([&] {
    while (std::ssize(alive) < count) make(alive);
  });
  times.small = small_computation(x);
  times.release = milliseconds_of([&] { alive.clear(); });
  return times;
}

template <class Make>
void live_curves(Report& report, const std::string& name, const std::string& work, Make&& make) {
  Curve made{.name = "scale.tensors." + name, .work = "make " + work, .of = "tensors"},
      released{
          .name = "scale.tensors." + name + ".release", .work = "release " + work, .of = "tensors"},
      small{.name = "scale.tensors." + name + ".beside",
            .work = "a small computation while there are " + work,
            .of = "tensors",
            .unit = "us",
            .growth = Growth::kFlat};
  Mesh one({{"one", 1}});
  Tensor x = mark_sharding(from_host(HostArray::full<float>({8, 8}, 1.0f)), one, P());
  wait_for(x);
  for (int count : {10000, 100000, 1000000}) {
    LiveTimes least{1e300, 1e300, 1e300};
    for (int turn = 0; turn < (count > 100000 ? 2 : 3); ++turn) {
      LiveTimes times = live_times(count, x, [&](std::vector<Tensor>& all) { make(all, x); });
      least.make = std::min(least.make, times.make);
      least.release = std::min(least.release, times.release);
      least.small = std::min(least.small, times.small);
    }
    made.points.push_back({double(count), least.make});
    released.points.push_back({double(count), least.release});
    small.points.push_back({double(count), least.small});
  }
  for (const Curve& curve : {made, released, small}) add_curve(report, curve);
}

}  // namespace

void tensor_curves(Report& report) {
  live_curves(report, "host", "tensors on the host", [](std::vector<Tensor>& all, const Tensor&) {
    all.push_back(from_host(HostArray::scalar(1.0f)));
  });
  live_curves(report, "lazy", "values that are recorded, not computed",
              [](std::vector<Tensor>& all, const Tensor& x) { all.push_back(x + x); });
  auto hundred =
      jit([](const Tensor& x) { return std::vector<Tensor>(100, x + 1.0f); }, {.name = "hundred"});
  live_curves(report, "device", "arrays on a device",
              [&](std::vector<Tensor>& all, const Tensor& x) {
                std::vector<Tensor> more = hundred(x);
                wait_for(more.back());
                for (Tensor& each : more) all.push_back(std::move(each));
              });
}

}  // namespace meshard::bench
