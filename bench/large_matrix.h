// The matrix that is sent to devices and read back.
#pragma once
#include <cstddef>
#include <cstdint>

namespace meshard::bench {

constexpr std::int64_t kSide = 8192;
constexpr std::size_t kBytes = kSide * kSide * 4;  ///< of its f32 elements

inline double gigabytes_per_second(double microseconds) {
  return double(kBytes) / microseconds / 1e3;
}

}  // namespace meshard::bench
