// Interprets a fuzz program's input as a sequence of choices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace meshard {

/// Each byte is one choice. After the last byte, every choice is the first one.
class ByteSource {
 public:
  ByteSource(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ == size_; }
  /// A number from low to high. @pre high - low < 256
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + (empty() ? 0 : data_[at_++] % (high - low + 1));
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

/// Aborts the program if the check fails, and prints what was done.
inline void fuzz_check(bool holds, const char* what, const std::string& done) {
  if (holds) return;
  std::fprintf(stderr, "%s does not hold after: %s\n", what, done.c_str());
  std::abort();
}

}  // namespace meshard
