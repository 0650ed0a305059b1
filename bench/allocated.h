// What a value costs on the heap.
#pragma once
#include <malloc.h>

#include <cstdint>
#include <vector>

namespace meshard::bench {

/// Bytes of the heap in use, with the allocator's own; of the thread that began the program.
inline std::int64_t allocated_bytes() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

/// Bytes for each of `count` values that make(i) gives, while all are alive.
template <class Make>
double bytes_each(int count, Make&& make) {
  std::vector<decltype(make(0))> alive;
  alive.reserve(static_cast<std::size_t>(count) + 1);
  alive.push_back(make(0));  // what only the first one costs
  std::int64_t before = allocated_bytes();
  for (int i = 1; i <= count; ++i) alive.push_back(make(i));
  return static_cast<double>(allocated_bytes() - before) / count + sizeof(alive[0]);
}

}  // namespace meshard::bench
