// The matrix that is sent to devices and read back.
#pragma once
#include <cstddef>
#include <cstdint>

#include "meshard/array/host_array.h"

namespace meshard::bench {

constexpr std::int64_t kSide = 8192;
constexpr std::size_t kBytes = kSide * kSide * 4;  ///< of its f32 elements

inline double gigabytes_per_second(double microseconds) {
  return double(kBytes) / microseconds / 1e3;
}

/// The matrix on the host, with numbers from 0 to 1023.
HostArray large_matrix();

/// Copies the matrix into untouched pages, which are huge pages if the kernel supports them, as our
/// own copies do. Returns the microseconds.
double copy_to_fresh_pages(const void* from, int threads);

}  // namespace meshard::bench
