// Heap memory used by values.
#pragma once
#include <malloc.h>

#include <cstdint>
#include <vector>

namespace meshard::bench {

/// Bytes of the heap in use, including allocator overhead, in the arena of the main thread.
inline std::int64_t allocated_bytes() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

/// Bytes for each of `count` values that make(i) returns, while all of them exist.
template <class Make>
double bytes_each(int count, Make&& make) {
  std::vector<decltype(make(0))> alive;
  alive.reserve(static_cast<std::size_t>(count) + 1);
  alive.push_back(make(0));  // excludes one-time costs of the first value
  std::int64_t before = allocated_bytes();
  for (int i = 1; i <= count; ++i) alive.push_back(make(i));
  return static_cast<double>(allocated_bytes() - before) / count + sizeof(alive[0]);
}

}  // namespace meshard::bench
