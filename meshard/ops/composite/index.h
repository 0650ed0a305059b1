// Indexing and slicing in NumPy's style.
//
// | NumPy            | meshard                              |
// |------------------|--------------------------------------|
// | x[0], x[0][1]    | x[0], x[0][1]                        |
// | x[0, 1]          | x[{0, 1}]                            |
// | x[1:4]           | x[range(1, 4)]                       |
// | x[:, -1]         | x[{whole, -1}]                       |
// | x[..., 2:]       | x[{ellipsis, range(2, none)}]        |
// | x[None, ::2]     | x[{newaxis, range(0, none, 2)}]      |
// | x[::-1]          | x[range(none, none, -1)]             |
// | x[i] (an array)  | take(x, i, 0)                        |
//
// `index(x, {...})` is the same as a function. C++20 has no operator[] with several arguments,
// hence the braces.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// An integer type, without bool.
template <class T>
concept IndexNumber = std::integral<T> && !std::same_as<T, bool>;

/// One end of a range: a number (negative counts from the end), or `none` for the end of the
/// dimension.
struct RangeBound {
  template <IndexNumber T>
  RangeBound(T number) : value(static_cast<std::int64_t>(number)) {}  // NOLINT: range(1, none)
  RangeBound(NoneType) {}                                             // NOLINT
  std::optional<std::int64_t> value;
};

/// A value: start, start + stride, ... until stop, which is excluded. Bounds out of range are
/// clamped, as in Python.
struct Range {
  RangeBound start, stop;
  std::int64_t stride = 1;
  /// `1:4`, `:-1`, `::2`, as Python writes it.
  std::string to_string() const;
};
/// `range(1, 4)`, `range(none, -1)`, `range(0, none, 2)`. A negative stride goes from the end to
/// the beginning: `range(none, none, -1)`. The stride must not be 0.
inline Range range(RangeBound start, RangeBound stop, std::int64_t stride = 1) {
  return {start, stop, stride};
}

/// The type of `whole`.
struct WholeType {};
/// The type of `newaxis`.
struct NewAxisType {};
/// The type of `ellipsis`.
struct EllipsisType {};
/// In x[...]: the whole dimension, `:`.
inline constexpr WholeType whole{};
/// In x[...]: a new dimension of size 1.
inline constexpr NewAxisType newaxis{};
/// In x[...]: all remaining dimensions, `...`.
inline constexpr EllipsisType ellipsis{};

/// A value: how x[...] indexes one dimension.
class IndexItem {
 public:
  enum class Kind : std::uint8_t { kNumber, kRange, kNewAxis, kEllipsis };

  template <IndexNumber T>
  IndexItem(T number) : kind_(Kind::kNumber), range_{number, none} {}      // NOLINT
  IndexItem(Range range) : kind_(Kind::kRange), range_(range) {}           // NOLINT
  IndexItem(WholeType) : kind_(Kind::kRange), range_{none, none} {}        // NOLINT
  IndexItem(NewAxisType) : kind_(Kind::kNewAxis), range_{none, none} {}    // NOLINT
  IndexItem(EllipsisType) : kind_(Kind::kEllipsis), range_{none, none} {}  // NOLINT

  Kind kind() const { return kind_; }
  std::int64_t number() const { return *range_.start.value; }
  const Range& range() const { return range_; }

 private:
  Kind kind_;
  Range range_;  // for a number, the start
};

/// A value: the items of x[...] and the caller's line. Created implicitly from one item or a list
/// in braces.
class IndexItems {
 public:
  /// No items: all of x.
  IndexItems(SourceLocation where = SourceLocation::current()) : where_(where) {}  // NOLINT
  template <IndexNumber T>
  IndexItems(T number, SourceLocation where = SourceLocation::current())  // NOLINT
      : items_{IndexItem(static_cast<std::int64_t>(number))}, where_(where) {}
  IndexItems(Range range, SourceLocation where = SourceLocation::current())  // NOLINT
      : items_{IndexItem(range)}, where_(where) {}
  IndexItems(WholeType, SourceLocation where = SourceLocation::current())  // NOLINT
      : items_{IndexItem(whole)}, where_(where) {}
  IndexItems(NewAxisType, SourceLocation where = SourceLocation::current())  // NOLINT
      : items_{IndexItem(newaxis)}, where_(where) {}
  IndexItems(EllipsisType, SourceLocation where = SourceLocation::current())  // NOLINT
      : items_{IndexItem(ellipsis)}, where_(where) {}
  IndexItems(std::initializer_list<IndexItem> items,
             SourceLocation where = SourceLocation::current())  // NOLINT
      : items_(items), where_(where) {}

  const std::vector<IndexItem>& items() const { return items_; }
  SourceLocation where() const { return where_; }

 private:
  std::vector<IndexItem> items_;
  SourceLocation where_;
};

/// A part of `x`, selected by one item per dimension, in order. Dimensions beyond the items are
/// whole. A number selects one element and removes the dimension.
///
/// @code
/// Tensor x = reshape(arange(12), {3, 4});
/// x[1];                       // [4, 5, 6, 7]
/// x[-1][0];                   // 8
/// x[{range(0, 2), -1}];       // [3, 7]
/// x[{newaxis, whole, 2}];     // [[2, 6, 10]]
/// index(x, {whole, 0});       // [0, 4, 8]
/// @endcode
/// @error a number out of range; more items than dimensions; two ellipses; a stride of 0.
Tensor index(In x, const std::vector<IndexItem>& items);

}  // namespace meshard
