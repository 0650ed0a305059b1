// Nested tuples of integers: the shapes, strides and coordinates of layouts.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
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

}  // namespace meshard
