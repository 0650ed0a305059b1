// Handwritten digits: 8x8 pixels and what they show.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;

/// Images (64 pixels of 0..1 each, row after row) and their labels (0..9).
struct Digits {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// The digits with these numbers, in this order.
  Digits pick(std::span<const std::int32_t> numbers) const;
};

/// What is learned from, and what is held back to see whether it was learned.
struct Split {
  Digits train, held_back;
};

/// Reads lines of 64 pixels of 0..16 and a label, separated by commas.
/// @error not found, or the line that is no digit.
meshard::Result<Digits> read_digits(const std::string& path);

/// Holds back `count` digits: always the same ones.
Split split(const Digits& all, std::int64_t count);

/// Where ./dev puts the digits: data/digits.csv in the cache folder.
std::string default_data_path();

/// Batches of a data set: every pass shuffles it anew, always in the same way for one seed. What
/// does not fill a batch at the end of a pass is left out of that pass.
class Batches {
 public:
  /// @pre 0 < size <= digits.size(); `digits` outlives this
  Batches(const Digits& digits, std::int64_t size, std::uint64_t seed);
  Digits next();

 private:
  const Digits& digits_;
  std::size_t size_, used_ = 0;
  std::uint64_t state_;
  std::vector<std::int32_t> order_;
};

/// SplitMix64 (Steele, Lea and Flood, 2014): the next of a sequence of 64-bit numbers. The standard
/// library's distributions differ between platforms; this does not.
std::uint64_t next_random(std::uint64_t& state);

}  // namespace digits
