#include "bench/large_matrix.h"

#include <sys/mman.h>

#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "bench/timing.h"

namespace meshard::bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

HostArray large_matrix() {
  HostArray array = HostArray::uninitialized({DType::f32, {kSide, kSide}});
  std::span<float> values = array.mutable_data<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i & 1023);
  return array;
}

double copy_to_fresh_pages(const void* from, int threads) {
  double begin = now();
  void* mapped =
      mmap(nullptr, kBytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto address = (reinterpret_cast<std::uintptr_t>(mapped) + kHugePage - 1) / kHugePage * kHugePage;
  char* to = reinterpret_cast<char*>(address);
  madvise(to, kBytes, MADV_HUGEPAGE);
  std::size_t part = kBytes / static_cast<std::size_t>(threads);
  auto copy = [&](int i) {
    std::size_t first = static_cast<std::size_t>(i) * part;
    std::memcpy(to + first, static_cast<const char*>(from) + first, part);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(copy, i);
  copy(0);
  for (std::thread& thread : others) thread.join();
  double time = now() - begin;
  munmap(mapped, kBytes + kHugePage);
  return time;
}

}  // namespace meshard::bench
