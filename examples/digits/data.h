// Data set of handwritten digits: 8x8 pixels and a label.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/core.h"

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;
inline constexpr std::int64_t kBatch = 128;  ///< digits of a training step

/// Images (64 pixels in [0, 1] each, row-major) and their labels (0 to 9).
struct Digits {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// The digits with these indices, in this order.
  Digits pick(std::span<const std::int32_t> numbers) const;
};

/// Training set and held-out test set.
struct Split {
  Digits train, held_back;
};

/// Reads lines of 64 pixels in 0..16 and a label, separated by commas.
/// @error not found; invalid argument with the number of a malformed line.
meshard::Result<Digits> read_digits(const std::string& path);

/// Holds out `count` digits, always the same ones.
Split split(const Digits& all, std::int64_t count);

/// The path to which ./dev downloads the digits: data/digits.csv in the cache folder.
std::string default_data_path();

/// Random batches of a data set. Each pass over the data uses a new order, which depends only on
/// the seed. A last batch that is not full is skipped.
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

/// SplitMix64 (Steele, Lea and Flood, 2014): the next 64-bit random number. Unlike the standard
/// library's distributions, the results are the same on all platforms.
std::uint64_t next_random(std::uint64_t& state);

}  // namespace digits
