// The dimensions an op works on, as an argument.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "meshard/array/shape.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// A value: one dimension, a list of dimensions, or all of them. Negative numbers count from the
/// last.
///
///     sum(x);           // all dimensions
///     sum(x, -1);       // the last
///     sum(x, {0, 2});   // two of them
///     sum(x, Dimensions{});  // none: an empty list that is spelled out
class DimensionList {
 public:
  /// All dimensions.
  DimensionList() = default;
  DimensionList(std::int64_t dimension) : listed_(Dimensions{dimension}) {}               // NOLINT
  DimensionList(std::initializer_list<std::int64_t> list) : listed_(Dimensions(list)) {}  // NOLINT
  DimensionList(Dimensions list) : listed_(std::move(list)) {}                            // NOLINT

  /// The dimensions for a tensor of `rank`: not negative, ascending.
  /// @error one is out of range or named twice; the message begins with `[place]`.
  Dimensions resolve(int rank, std::string_view place, SourceLocation where) const;

 private:
  std::optional<Dimensions> listed_;
};

/// True if a dimension is in the list.
inline bool holds(const Dimensions& list, std::int64_t dimension) {
  for (std::int64_t listed : list)
    if (listed == dimension) return true;
  return false;
}

}  // namespace meshard
