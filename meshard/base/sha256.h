// SHA-256 (FIPS 180-4), computed incrementally.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshard {

/// The hash of all bytes passed to add().
class Sha256 {
 public:
  void add(std::string_view bytes);
  /// The hash as 64 lowercase hexadecimal digits.
  /// @pre digits() or bytes() is called once, after the last add()
  std::string digits();
  /// The hash as 32 bytes.
  std::string bytes();

 private:
  void add_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  std::size_t in_rest_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace meshard
