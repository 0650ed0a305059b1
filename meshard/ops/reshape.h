#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "meshard/graph/tensor.h"

namespace meshard {

struct ReshapeAttributes {
  Shape shape;
  MESHARD_FIELDS(shape)
};

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

}  // namespace meshard
