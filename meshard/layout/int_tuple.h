// Nested tuples of integers: the shapes, strides and coordinates of layouts.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "meshard/base/inline_vector.h"
#include "meshard/base/result.h"

namespace meshard {

/// A list of integers that stores up to six inline.
using IntVector = InlineVector<std::int64_t, 6>;

/// A view: a parameter that accepts any list of integers. Converts from any contiguous list and
/// from braces: `shard_shape({16, 8})`. Does not own the integers.
class IntView : public std::span<const std::int64_t> {
 public:
  template <class List>
  requires std::constructible_from < std::span<const std::int64_t>,
  const List& > IntView(const List& list) : span(list) {}  // NOLINT: a parameter
  IntView(std::initializer_list<std::int64_t> list) : span(list.begin(), list.size()) {}  // NOLINT
};

class TextScanner;

/// The maximum nesting that is parsed. Texts may be untrusted, and the parser recurses once per
/// parenthesis.
inline constexpr int kMaxParsedDepth = 100;

/// In a coordinate: "keep this mode". Printed and parsed as `_`; not allowed in shapes and strides.
inline constexpr std::int64_t hole = std::numeric_limits<std::int64_t>::min();

/// A value: an integer, or a tuple of IntTuples, such as `(2,(3,4))`.
///
/// Stored flat (the integers, and the nesting in preorder), so that tuples of a few integers need
/// no heap memory.
class IntTuple {
 public:
  /// The empty tuple `()`.
  IntTuple() { profile_.push_back(0); }
  /// An integer.
  IntTuple(std::int64_t value) {  // NOLINT: an integer is an IntTuple
    leaves_.push_back(value);
    profile_.push_back(kLeaf);
  }
  /// A tuple. `IntTuple{2}` is the tuple `(2)`, `IntTuple(2)` the integer `2`.
  IntTuple(std::initializer_list<IntTuple> elements)
      : IntTuple(std::span<const IntTuple>(elements.begin(), elements.size())) {}
  explicit IntTuple(std::span<const IntTuple> elements);
  explicit IntTuple(std::span<const IntTuple* const> elements);
  /// A tuple of integers.
  static IntTuple flat(IntView values) { return flat(IntVector(values.begin(), values.end())); }
  template <std::same_as<IntVector> List>  // an rvalue, which is moved
  static IntTuple flat(List&& values) {
    return IntTuple(std::forward<List>(values), Flat());
  }

  /// True for a tuple of integers, including `()`.
  bool is_flat() const { return profile_.size() == leaves_.size() + 1; }
  bool is_integer() const { return profile_[0] == kLeaf; }
  /// @pre is_integer()
  std::int64_t value() const { return leaves_[0]; }
  /// The number of elements; 1 for an integer.
  std::size_t rank() const { return is_integer() ? 1 : static_cast<std::size_t>(profile_[0]); }
  /// Element i; element 0 of an integer is the integer. @error i is not below rank().
  IntTuple operator[](std::size_t i) const;
  /// The nesting depth: 0 for an integer, 1 for `()`, else 1 + the depth of the deepest element.
  std::size_t depth() const;
  /// All integers, left to right.
  std::span<const std::int64_t> leaves() const { return leaves_; }
  /// The same nesting with other integers. @pre values.size() == leaves().size()
  IntTuple with_leaves(IntView values) const;
  /// The product of all integers; 1 for `()`. @error it does not fit 64 bits.
  std::int64_t product() const;
  /// True if the nestings are equal.
  bool congruent(const IntTuple& other) const { return profile_ == other.profile_; }

  /// The text form: `4`, `(2,4)`, `((2,2),4)`, `()`, with holes `(2,_)`.
  std::string to_string() const;
  /// Parses the output of to_string.
  /// @error not an int tuple, or one nested deeper than kMaxParsedDepth.
  static Result<IntTuple> parse(std::string_view text);
  static IntTuple read(TextScanner& scanner);

  std::size_t hash() const;
  friend bool operator==(const IntTuple&, const IntTuple&) = default;

 private:
  static constexpr std::int16_t kLeaf = -1;
  struct Flat {};
  IntTuple(IntVector&& values, Flat);
  IntVector leaves_;
  InlineVector<std::int16_t, 8> profile_;  // preorder: kLeaf, or the number of elements
};

/// True if one of the integers is a hole.
bool has_hole(const IntTuple& tuple);

/// The coordinate of `index` in `shape`, with the nesting of the shape.
/// @pre the sizes of `shape` are at least 1
/// @post index_of(shape, coordinate_of(shape, i)) = i for i >= 0. Indices at or above the shape's
/// product continue along the first mode.
IntTuple coordinate_of(const IntTuple& shape, std::int64_t index);

/// The coordinate at which the layout shape:stride has the value `index`. This is (index / stride)
/// modulo size for each integer, as PyTorch 2.15 defines it. If `index` is a tuple, each element
/// applies to one mode.
/// @pre sizes are at least 1, the index is not negative
/// @post value_of(coordinate_of(shape, stride, L(i)), shape, stride) = L(i) if L = shape:stride is
/// orthogonal.
/// @error the nestings do not match; a stride below 1.
IntTuple coordinate_of(const IntTuple& shape, const IntTuple& stride, const IntTuple& index);

/// The index of a coordinate in `shape`. An element may be the index of a whole nested mode.
/// @error the coordinate does not match the shape's nesting.
std::int64_t index_of(const IntTuple& shape, const IntTuple& coordinate);

/// The value of the layout shape:stride at a coordinate. An element may be the index of a whole
/// nested mode; a hole counts as 0.
/// @pre sizes are at least 1
/// @error the coordinate or the stride does not match the shape's nesting.
std::int64_t value_of(const IntTuple& coordinate, const IntTuple& shape, const IntTuple& stride);

/// Converts a coordinate to the nesting of the shape `destination`. An integer is an index. A tuple
/// is converted to an index, if the destination is an integer, by `source`, the shape that the
/// tuple belongs to.
/// @error the nestings do not match; an index that is not below the destination's size; a tuple for
/// an integer destination without a source.
IntTuple convert_coordinate(const IntTuple& coordinate, const IntTuple& destination,
                            const std::optional<IntTuple>& source = std::nullopt);

/// The sum of the products of corresponding integers: (2,3) and (4,5) give 23.
/// @error a and b differ in nesting; the sum does not fit 64 bits.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);

/// The products of corresponding integers, nested like `a`. Where `a` has an integer and `b` a
/// tuple, the tuple counts as its product.
/// @error b does not match a's nesting; a product does not fit 64 bits.
IntTuple elementwise_product(const IntTuple& a, const IntTuple& b);

/// The largest integer of a tuple; 0 for `()`.
std::int64_t largest(const IntTuple& tuple);

/// The sign (-1, 0 or 1) of each integer, nested like `tuple`.
IntTuple signs(const IntTuple& tuple);

/// Shape `a` divided by `b`, rounded up: the number of groups of `b` indices. A tuple b divides
/// integer by integer. An integer b divides the integers of a from left to right: (3,4) by 6 is
/// (1,2). If a is an integer and b a tuple, b counts as its product.
/// @pre all integers are positive
/// @error two corresponding integers where neither divides the other; b does not match a's nesting.
Result<IntTuple> shape_divide(const IntTuple& a, const IntTuple& b);

/// The strides of the compact row-major layout of `shape`; the last stride is `start`. If `start`
/// is a tuple, each element applies to one mode of `shape`.
/// @error start does not match shape's nesting; a stride does not fit 64 bits.
IntTuple compact_stride(const IntTuple& shape, const IntTuple& start = 1);

}  // namespace meshard
