// Sums and products of counts that saturate at an upper bound instead of overflowing.
#pragma once
#include <cstdint>

namespace meshard {

/// The upper bound: larger than any real count of bytes, elements or executions.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 52;

/// a + b, at most kMostCounted. @pre neither is above kMostCounted
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a + b < kMostCounted ? a + b : kMostCounted;
}

/// a * b, at most kMostCounted; 0 if either is negative.
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0) return 0;
  return a > kMostCounted / b ? kMostCounted : a * b;
}

}  // namespace meshard
