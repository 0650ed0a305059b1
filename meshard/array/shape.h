// The shape of an array, and the type of a tensor.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/dtype/dtype.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// A short list of 64-bit integers: dimension numbers, sizes or strides.
using Dimensions = InlineVector<std::int64_t, 6>;

/// A value: the sizes of an array's dimensions, in row-major order. The first dimension varies
/// slowest. Rank 0 is a scalar; a size may be 0.
///
///     Shape s{8, 4};
///     s.rank();     // 2
///     s.size();     // 32
///     s[-1];        // 4
///     s.strides();  // 4, 1
class Shape {
 public:
  Shape() = default;
  /// @error invalid argument if a size is negative.
  Shape(std::initializer_list<std::int64_t> sizes,  // NOLINT: written ones({2, 3})
        SourceLocation where = SourceLocation::current())
      : sizes_(sizes) {
    check(where);
  }
  explicit Shape(std::span<const std::int64_t> sizes,
                 SourceLocation where = SourceLocation::current())
      : sizes_(sizes) {
    check(where);
  }
  explicit Shape(const std::vector<std::int64_t>& sizes,
                 SourceLocation where = SourceLocation::current())
      : Shape(std::span<const std::int64_t>(sizes), where) {}
  explicit Shape(Dimensions sizes, SourceLocation where = SourceLocation::current())
      : sizes_(std::move(sizes)) {
    check(where);
  }

  int rank() const { return static_cast<int>(sizes_.size()); }
  bool is_scalar() const { return sizes_.empty(); }
  /// The size of a dimension; a negative number counts from the last dimension.
  /// @error out of range.
  std::int64_t operator[](std::int64_t dimension) const;
  const Dimensions& sizes() const { return sizes_; }
  const std::int64_t* begin() const { return sizes_.begin(); }
  const std::int64_t* end() const { return sizes_.end(); }
  operator std::span<const std::int64_t>() const { return sizes_; }  // NOLINT: a view

  /// The number of elements; 1 for a scalar.
  /// @error out of range if it exceeds 2^63 - 1.
  std::int64_t size() const;
  /// Row-major strides in elements; the last is 1. A dimension of size 0 counts as 1, so no stride
  /// is 0.
  Dimensions strides() const;
  /// The same shape with one size replaced.
  Shape with(std::int64_t dimension, std::int64_t size) const;

  /// `[8, 4]`; a scalar is `[]`.
  std::string to_string() const;
  /// Parses the output of to_string; spaces are ignored.
  static Result<Shape> parse(std::string_view text);

  std::size_t hash() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  void check(const SourceLocation& where) const;
  Dimensions sizes_;
};

/// Converts a dimension number in -rank..rank-1 to 0..rank-1.
/// @param place the prefix of the error message: `[concat] dimension 3 is outside -2..1 (rank 2)`.
/// @error out of range.
int normalize_dimension(std::int64_t dimension, int rank, std::string_view place = "shape",
                        SourceLocation where = SourceLocation::current());

/// A value: the dtype and shape of a tensor. Prints as `f32[8,4]`; a scalar is `f32[]`.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  int rank() const { return shape.rank(); }
  std::int64_t size() const { return shape.size(); }
  /// The size of the dense array in bytes.
  /// @error out of range if it exceeds 2^63 - 1.
  std::int64_t bytes() const;
  std::string to_string() const;
  static Result<TensorType> parse(std::string_view text);
  std::size_t hash() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace meshard

/// Disables std::ranges::size: Shape::size() is the number of elements, not of dimensions, so it
/// differs from the distance between begin() and end().
template <>
inline constexpr bool std::ranges::disable_sized_range<meshard::Shape> = true;
template <>
struct std::hash<meshard::Shape> {
  std::size_t operator()(const meshard::Shape& shape) const noexcept { return shape.hash(); }
};
template <>
struct std::hash<meshard::TensorType> {
  std::size_t operator()(const meshard::TensorType& type) const noexcept { return type.hash(); }
};
