// Boxes of arrays: a range of indices for each dimension, such as the part that a shard covers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"

namespace meshard {

/// A value: the indices from `start` to `stop - 1` of one dimension. Prints as `2:4`.
struct DimensionSlice {
  std::int64_t start = 0;
  std::int64_t stop = 0;

  std::int64_t size() const { return stop - start; }
  std::string to_string() const;
  static Result<DimensionSlice> parse(std::string_view text);
  friend bool operator==(const DimensionSlice&, const DimensionSlice&) = default;
};

/// One slice for each dimension of an array.
using Box = InlineVector<DimensionSlice, 4>;
/// `[0:8, 2:4]`.
std::string to_string(const Box& box);

}  // namespace meshard
