// Transfers host arrays to devices: 256 MB of f32 to 8 devices.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/large_matrix.h"
#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

// Sends rows of an aligned array directly through the C API, without copying any bytes.
double raw_zero_copy(const RawClient& client, const float* data) {
  double begin = now();
  std::vector<PJRT_Buffer*> buffers;
  for (int d = 0; d < 8; ++d)
    buffers.push_back(send(client, data + d * (kSide / 8) * kSide, {kSide / 8, kSide}, d,
                           PJRT_HostBufferSemantics_kImmutableZeroCopy));
  double time = now() - begin;
  for (PJRT_Buffer* buffer : buffers) destroy_buffer(client.api, buffer);
  return time;
}

struct Placed {
  double time;
  std::int64_t peak, copied;
};

Placed place_once(const HostArray& array, const Mesh& mesh, const PartitionSpec& spec) {
  Tensor host = from_host(array);
  RuntimeCounters before = runtime_counters();
  std::int64_t resident = memory("VmRSS");
  reset_peak_memory();
  double begin = now();
  Tensor placed = mark_sharding(host, mesh, spec);
  wait_for(placed);
  double time = now() - begin;
  RuntimeCounters done = runtime_counters() - before;
  return {time, memory("VmHWM") - resident, std::int64_t(done.bytes_sent - done.bytes_aliased)};
}

struct Case {
  const char* name;
  const char* work;
  Mesh mesh;
  PartitionSpec spec;
  bool zero_copy;
  bool aligned;
};

void case_row(Report& report, const Case& test, const HostArray& array, double memcpy2) {
  Placed worst{0, 0, 0};
  auto ours = [&] {
    Placed placed = place_once(array, test.mesh, test.spec);
    worst.peak = std::max(worst.peak, placed.peak);
    worst.copied = std::max(worst.copied, placed.copied);
    return placed.time;
  };
  RawClient raw = raw_runtime_client();
  auto* data = reinterpret_cast<const float*>(array.bytes());
  char note[160];
  Row row{.name = std::string("place.") + test.name, .work = test.work};
  if (test.zero_copy) {
    auto [time, floor] = in_turns(15, ours, [&] { return raw_zero_copy(raw, data); });
    row.unit = "us", row.ours = time, row.floor = floor;
    row.floor_name = "rows through the C API, zero-copy";
    row.goal = "zero-copy, under 200 us";
    row.bound = 200;
    row.also = worst.peak < (16 << 20);
  } else {
    auto [time, floor] = in_turns(6, ours, [&] { return copy_to_fresh_pages(data, 1); });
    row.unit = "GB/s", row.ours = gigabytes_per_second(time),
    row.floor = gigabytes_per_second(floor);
    row.floor_name = "memcpy to fresh huge pages";
    row.goal = "at least 0.9 times, 256 MB more";
    row.bound = 0.9 * row.floor;
    row.higher_is_better = true;
    row.also = worst.peak < std::int64_t(kBytes) * 11 / 10;
  }
  std::snprintf(note, sizeof note, "memory grew by %lld MB",
                static_cast<long long>(worst.peak >> 20));
  row.note = note;
  if (!test.zero_copy) {
    std::snprintf(note, sizeof note, "; memcpy on 2 threads %.1f GB/s",
                  gigabytes_per_second(memcpy2));
    row.note += note;
  }
  report.add(row);
}

}  // namespace

void place_rows(Report& report) {
  HostArray array = large_matrix();
  // The same data where the devices cannot use it in place: 4 bytes past an aligned address.
  std::vector<char> memory_of_user(kBytes + 128);
  auto first = reinterpret_cast<std::uintptr_t>(memory_of_user.data());
  char* odd = memory_of_user.data() + ((64 - first % 64) % 64) + 4;
  std::memcpy(odd, array.bytes(), kBytes);
  HostArray unaligned = HostArray::borrow({DType::f32, {kSide, kSide}}, odd, {});

  Mesh line({{"x", 8}}), grid({{"x", 2}, {"y", 4}});
  const Case cases[] = {
      {"rows", "256 MB, aligned, split by rows", line, P("x", none), true, true},
      {"replicated", "256 MB, aligned, on each of 8 devices", line, P(), true, true},
      {"columns", "256 MB split by columns", line, P(none, "x"), false, true},
      {"grid", "256 MB split 2x4", grid, P("x", "y"), false, true},
      {"rows.unaligned", "256 MB, not aligned, split by rows", line, P("x", none), false, false},
      {"replicated.unaligned", "256 MB, not aligned, on each of 8 devices", line, P(), false,
       false},
  };
  Least two;
  for (int i = 0; i < 5; ++i) two.take(copy_to_fresh_pages(array.bytes(), 2));
  for (const Case& test : cases)
    case_row(report, test, test.aligned ? array : unaligned, two.value);
}

}  // namespace meshard::bench
