// Layouts are row-major: the last mode varies fastest, as in PyTorch and NumPy. NVIDIA's CuTe uses
// the opposite order.
//
// The layout algebra is described in Cris Cecka, "CuTe Layout Representation and Algebra", 2026,
// and in CUTLASS's documentation; here every mode order is reversed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: a function from indices 0..size()-1 to integers, given by shape and stride. Shape and
/// stride have the same nesting. `(2,4):(4,1)` maps (i, j) to 4 i + j. Each element of the outer
/// tuple is a mode.
class Layout {
 public:
  /// `():()`, which maps 0 to 0.
  Layout() = default;
  /// The compact row-major layout of `shape`: the identity on 0..size-1.
  /// @error a size below 1, or a product that does not fit 64 bits.
  explicit Layout(IntTuple shape);
  /// A layout with the given shape and stride.
  /// @error shape and stride differ in nesting; a size below 1; size or cosize do not fit 64 bits.
  Layout(IntTuple shape, IntTuple stride);
  /// A layout with the modes sizes[k]:strides[k], one integer each: `s:d` for one mode, `1:0` for
  /// none.
  /// @error a size below 1; size or cosize do not fit 64 bits.
  static Layout of_modes(IntVector&& sizes, IntVector&& strides);

  const IntTuple& shape() const { return shape_; }
  const IntTuple& stride() const { return stride_; }
  /// The number of modes.
  std::size_t rank() const { return shape_.rank(); }
  std::size_t depth() const { return shape_.depth(); }
  /// The number of indices.
  std::int64_t size() const { return size_; }
  /// The largest value plus one.
  std::int64_t cosize() const { return cosize_; }
  /// Mode i as a layout. @error i is not below rank().
  Layout mode(std::size_t i) const { return Layout(shape_[i], stride_[i]); }

  /// The value at `index`. Indices at or above size() continue along the first mode.
  /// @post L(i) = L(coordinate_of(L.shape(), i))
  std::int64_t operator()(std::int64_t index) const;
  /// The value at a coordinate with one element per mode. An element is an index of its mode, or a
  /// tuple with the mode's nesting.
  /// @pre no holes (see modes.h)
  /// @error the coordinate does not match the shape's nesting.
  std::int64_t operator()(const IntTuple& coordinate) const;

  /// The text form: `(2,4):(4,1)`.
  std::string to_string() const;
  static Result<Layout> parse(std::string_view text);

  std::size_t hash() const;
  friend bool operator==(const Layout& a, const Layout& b) {
    return a.shape_ == b.shape_ && a.stride_ == b.stride_;
  }

 private:
  friend Layout coalesce(const Layout& layout);
  friend Layout concatenate(const Layout& first, const Layout& second);
  // With known size and cosize. @pre no size is below 1, no stride is a hole
  Layout(IntTuple&& shape, IntTuple&& stride, std::int64_t size, std::int64_t cosize)
      : shape_(std::move(shape)), stride_(std::move(stride)), size_(size), cosize_(cosize) {}
  // Another representation of the function of `other`.
  Layout(IntTuple shape, IntTuple stride, const Layout& other)
      : shape_(std::move(shape)),
        stride_(std::move(stride)),
        size_(other.size_),
        cosize_(other.cosize_) {}

  IntTuple shape_;
  IntTuple stride_;
  std::int64_t size_ = 1;
  std::int64_t cosize_ = 1;
};

}  // namespace meshard
