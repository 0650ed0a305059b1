// Layouts are row-major: the last mode is the fastest, as in PyTorch and NumPy (NVIDIA's CuTe is
// the other way round).
//
// The algebra of layouts is described in Cris Cecka, "CuTe Layout Representation and Algebra",
// 2026, and in CUTLASS's documentation; here every mode order is reversed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// A value: a function from indices 0..size()-1 to integers, given by a shape and a stride of the
/// same nesting. `(2,4):(4,1)` maps (i, j) to 4 i + j. One element of the outer tuple is a mode.
class Layout {
 public:
  /// `():()`: the function 0 -> 0.
  Layout() = default;
  /// The compact row-major layout of `shape`: the identity on 0..size-1.
  /// @error a size below 1, or a product that does not fit 64 bits.
  explicit Layout(IntTuple shape);
  /// @error shape and stride differ in nesting; a size below 1; size or cosize do not fit 64 bits.
  Layout(IntTuple shape, IntTuple stride);
  /// The modes sizes[k]:strides[k], of one integer each: `s:d` for one mode, `1:0` for none.
  /// @error as above.
  static Layout of_modes(IntVector&& sizes, IntVector&& strides);

  const IntTuple& shape() const { return shape_; }
  const IntTuple& stride() const { return stride_; }
  /// Number of modes.
  std::size_t rank() const { return shape_.rank(); }
  std::size_t depth() const { return shape_.depth(); }
  /// Number of indices.
  std::int64_t size() const { return size_; }
  /// One more than the largest value.
  std::int64_t cosize() const { return cosize_; }
  /// Mode i alone. @error i is not below rank().
  Layout mode(std::size_t i) const { return Layout(shape_[i], stride_[i]); }

  /// The value at `index`. Indices at or above size() run on along the first mode.
  /// @post L(i) = L(coordinate_of(L.shape(), i))
  std::int64_t operator()(std::int64_t index) const;
  /// The value at a coordinate: an element for each mode, each an index of that mode or nested as
  /// it is.
  /// @pre no holes (see slice.h)
  /// @error the coordinate does not fit the shape's nesting.
  std::int64_t operator()(const IntTuple& coordinate) const;

  /// `(2,4):(4,1)`.
  std::string to_string() const;
  static Result<Layout> parse(std::string_view text);

  std::size_t hash() const;
  friend bool operator==(const Layout& a, const Layout& b) {
    return a.shape_ == b.shape_ && a.stride_ == b.stride_;
  }

 private:
  friend Layout coalesce(const Layout& layout);
  // The function of `other`, written otherwise.
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
