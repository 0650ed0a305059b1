// Up to 512 virtual devices, each number of devices in a process of its own.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/scale/curve.h"
#include "meshard/base/cat.h"

namespace meshard::bench {
namespace {

constexpr int kDeviceCounts[] = {8, 64, 512};

std::vector<Tensor> halved(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

void print_time(const char* name, double ours, double floor = 0) {
  std::printf("%s %.6f %.6f\n", name, ours, floor);
}

// Reads all shards, one after the other.
void read_raw(const DeviceArray& array, std::byte* to) {
  const PJRT_Api* api = runtime_client().plugin().api();
  std::vector<PJRT_Event*> events;
  std::size_t part = 512 * 512 * 4 / array.num_shards();
  for (std::size_t i = 0; i < array.num_shards(); ++i) {
    PJRT_Buffer_ToHostBuffer_Args read{};
    read.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
    read.src = array.buffers()[i].raw();
    read.dst = to + i * part;
    read.dst_size = part;
    check(api, api->PJRT_Buffer_ToHostBuffer(&read), "read");
    events.push_back(read.event);
  }
  for (PJRT_Event* event : events) await_event(api, event);
}

// A program called through meshard and through the C API.
template <class Step>
void print_call(const char* name, Step& step, const std::vector<Tensor>& arguments, int devices) {
  Tensor result = step(arguments).back();
  wait_for(result);
  RawProgram raw(raw_runtime_client(), module_of(step), devices, shard_shapes(arguments));
  OursAndFloor times = in_turns(
      devices > 100 ? 7 : 15,
      [&] {
        return milliseconds_of([&] {
          std::vector<Tensor> results = step(arguments);
          wait_for(results.back());
        });
      },
      [&] {
        return milliseconds_of([&] {
          raw.launch();
          raw.await();
          raw.free_outputs();
        });
      });
  print_time(name, times.ours, times.floor);
}

struct DeviceCase {
  const char* name;
  const char* work;
};
const DeviceCase kDeviceCases[] = {
    {"place", "place a 1 MiB array, split by rows"},
    {"replicate", "place a 64 KiB array on every device"},
    {"read", "read the split array"},
    {"read.replicated", "read an array that every device has"},
    {"first", "the first call of a function of 4 arguments, which compiles it"},
    {"call", "a call of it"},
    {"sum", "a call that sums over all devices"},
    {"reverse", "a call that reverses the order of the devices"},
    {"transfer", "move the array to the same devices in reverse order"},
    {"mark", "mark an array that is already laid out so"},
};

}  // namespace

int device_child() {
  const char* text = std::getenv("MESHARD_CPU_DEVICES");
  const int devices = text != nullptr ? std::atoi(text) : 8;
  Mesh mesh({{"x", devices}});
  std::vector<std::int64_t> reversed = mesh.device_ids().to_vector();
  std::reverse(reversed.begin(), reversed.end());
  Mesh backward_mesh({{"x", devices}}, reversed);
  HostArray large = HostArray::full<float>({512, 512}, 1.0f),
            small = HostArray::full<float>({128, 128}, 1.0f);
  Tensor rows, whole;
  auto turns = [&](auto f) { return least_of(7, [&] { return milliseconds_of(f); }); };
  print_time("place", turns([&] {
               rows = mark_sharding(from_host(large), mesh, P("x"));
               wait_for(rows);
             }));
  print_time("replicate", turns([&] {
               whole = mark_sharding(from_host(small), mesh, P());
               wait_for(whole);
             }));
  HostArray to = HostArray::full<float>({512, 512}, 0.0f);
  const DeviceArray& placed = shards_of(rows);
  OursAndFloor read = in_turns(
      7, [&] { return milliseconds_of([&] { placed.read_into(to.mutable_bytes(), {}); }); },
      [&] { return milliseconds_of([&] { read_raw(placed, to.mutable_bytes()); }); });
  print_time("read", read.ours, read.floor);
  const DeviceArray& everywhere = shards_of(whole);
  print_time("read.replicated", turns([&] { everywhere.read_into(to.mutable_bytes(), {}); }));
  print_time("mark", turns([&] { wait_for(mark_sharding(rows, mesh, P("x"))); }));
  std::vector<Tensor> arguments(4, rows);
  auto step = jit(&halved, {.name = "halved"});
  print_time("first", milliseconds_of([&] { wait_for(step(arguments).back()); }));
  print_call("call", step, arguments, devices);
  auto summed = jit([](const std::vector<Tensor>& given) { return std::vector{sum(given[0])}; },
                    {.name = "summed"});
  print_call("sum", summed, {rows}, devices);
  auto reversed_rows = jit(
      [&](const std::vector<Tensor>& given) {
        return std::vector{mark_sharding(given[0], backward_mesh, P("x"))};
      },
      {.name = "reversed"});
  print_call("reverse", reversed_rows, {rows}, devices);
  print_time("transfer", turns([&] { wait_for(transfer(rows, backward_mesh, P("x"))); }));
  std::fflush(stdout);
  _exit(0);
}

void device_curves(Report& report) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
  std::map<std::string, std::vector<CurvePoint>> points;
  for (int devices : kDeviceCounts) {
    std::string command = cat("MESHARD_PROGRAM_CACHE_MB=0 MESHARD_CPU_DEVICES=", devices, " '",
                              self, "' --child devices now");
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return;
    char name[64];
    double ours = 0, floor = 0;
    while (std::fscanf(pipe, "%63s %lf %lf", name, &ours, &floor) == 3)
      points[name].push_back({double(devices), ours, floor});
    pclose(pipe);
  }
  for (const DeviceCase& test : kDeviceCases) {
    Curve curve{.name = cat("scale.devices.", test.name),
                .work = test.work,
                .of = "devices",
                .points = points[test.name],
                .floor_name = "through the C API"};
    if (curve.points.size() != std::size(kDeviceCounts))
      curve.note = "a process ended early: points are missing";
    add_curve(report, curve);
  }
}

}  // namespace meshard::bench
