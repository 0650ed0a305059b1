// Stable hashes of bytes, used as keys of the program cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshard {

/// A value: a 128-bit hash of a sequence of bytes. Stable across processes and versions.
struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// 32 hexadecimal digits.
  std::string to_string() const;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

/// The 128-bit XXH3 hash of `bytes` (Yann Collet, github.com/Cyan4973/xxHash).
Fingerprint fingerprint(std::string_view bytes);

/// Mixes `value` into `seed`; used by the hash() of small values. Not stable across versions.
constexpr std::size_t hash_combine(std::size_t seed, std::size_t value) {
  std::uint64_t mixed = (seed ^ value) * 0x9E3779B97F4A7C15ull;  // 2^64 over the golden ratio
  return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

}  // namespace meshard

template <>
struct std::hash<meshard::Fingerprint> {
  std::size_t operator()(const meshard::Fingerprint& f) const noexcept {
    return static_cast<std::size_t>(f.low);
  }
};
