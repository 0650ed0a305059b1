// Transfers arrays from devices to the host.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/large_matrix.h"
#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

// Reads all shards at once through the C API into `to`, as if the array were split by rows.
double raw_read(const PJRT_Api* api, const DeviceArray& array, char* to) {
  double begin = now();
  std::vector<PJRT_Event*> events;
  std::size_t part = kBytes / array.num_shards();
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
  return now() - begin;
}

void large_row(Report& report, const std::string& name, const PartitionSpec& spec) {
  Mesh mesh({{"x", 8}});
  HostArray host = large_matrix();
  Tensor placed = mark_sharding(from_host(std::move(host)), mesh, spec);
  const DeviceArray& array = shards_of(placed);
  HostArray to = HostArray::full<float>({kSide, kSide}, 0.0f);
  auto* destination = to.mutable_bytes();
  const PJRT_Api* api = runtime_client().plugin().api();
  auto [ours, floor] = in_turns(
      8,
      [&] {
        double begin = now();
        array.read_into(destination, {});
        return now() - begin;
      },
      [&] { return raw_read(api, array, reinterpret_cast<char*>(destination)); });
  Row row{.name = "gather." + name,
          .work = "256 MB split by " + name + " into the caller's memory",
          .unit = "GB/s",
          .ours = gigabytes_per_second(ours),
          .floor = gigabytes_per_second(floor),
          .floor_name = "each shard to memory of its own through the C API",
          .goal = "at least 0.9 times"};
  row.bound = 0.9 * row.floor;
  row.higher_is_better = true;
  report.add(row);
}

void small_row(Report& report) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  Tensor placed =
      mark_sharding(from_host(HostArray::full<float>({64, 64}, 2.0f)), mesh, P("x", "y"));
  const DeviceArray& array = shards_of(placed);
  RuntimeCounters before = runtime_counters();
  const PJRT_Api* api = runtime_client().plugin().api();
  std::vector<char> parts(64 * 64 * 4);
  auto raw = [&] {
    double begin = now();
    std::vector<PJRT_Event*> events;
    for (std::size_t i = 0; i < array.num_shards(); ++i) {
      PJRT_Buffer_ToHostBuffer_Args read{};
      read.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
      read.src = array.buffers()[i].raw();
      read.dst = parts.data() + i * parts.size() / 8;
      read.dst_size = parts.size() / 8;
      check(api, api->PJRT_Buffer_ToHostBuffer(&read), "read");
      events.push_back(read.event);
    }
    for (PJRT_Event* event : events) await_event(api, event);
    return now() - begin;
  };
  auto [ours, floor] = in_turns(
      200,
      [&] {
        double begin = now();
        HostArray host = placed.to_host();
        return now() - begin;
      },
      raw);
  report.add({.name = "gather.small",
              .work = "64x64 split 2x4, as a new host array",
              .unit = "us",
              .ours = ours,
              .floor = floor,
              .floor_name = "each shard to memory of its own through the C API",
              .goal = "under 100 us, nothing compiled",
              .bound = 100,
              .also = (runtime_counters() - before).compiles == 0});
}

}  // namespace

void gather_rows(Report& report) {
  large_row(report, "rows", P("x", none));
  large_row(report, "columns", P(none, "x"));
  small_row(report);
}

}  // namespace meshard::bench
