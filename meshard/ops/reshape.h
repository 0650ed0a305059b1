// The same elements in other shapes: reshaped, broadcast.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A value: the sizes requested from reshape. One may be -1: it is inferred from the others.
class NewShape {
 public:
  NewShape(std::initializer_list<std::int64_t> sizes)
      : sizes_(sizes) {}                                    // NOLINT: reshape(x, {2, -1})
  NewShape(Dimensions sizes) : sizes_(std::move(sizes)) {}  // NOLINT
  NewShape(const Shape& shape) : sizes_(shape.sizes()) {}   // NOLINT

  const Dimensions& sizes() const { return sizes_; }

 private:
  Dimensions sizes_;
};

/// The same elements in row-major order, in another shape: `reshape(x, {4, -1})`.
/// @error the number of elements differs; more than one -1; no size fits a -1.
Tensor reshape(In x, NewShape shape);

/// Broadcasts `x` to `shape` with an explicit dimension mapping. Dimension i of `x` becomes
/// dimension dimensions[i] of the result, a size of 1 is repeated, and dimensions not named are
/// new. `dimensions` is ascending; negative counts from the last.
Tensor broadcast_in_dim(In x, Shape shape, Dimensions dimensions);

/// Broadcasts `x` to `shape` as NumPy does: dimensions are aligned at the last, a size of 1 is
/// repeated, missing leading dimensions are new. @error invalid argument naming both shapes.
Tensor broadcast_to(In x, Shape shape);

}  // namespace meshard
