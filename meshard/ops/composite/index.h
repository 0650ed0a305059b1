// Indexing and slicing in NumPy's style.
//
// | NumPy            | meshard                                    |
// |------------------|--------------------------------------------|
// | x[0]             | index(x, {0})                              |
// | x[1:4]           | index(x, {range(1, 4)})                    |
// | x[:, -1]         | index(x, {whole, -1})                      |
// | x[..., 2:]       | index(x, {ellipsis, range(2, none)})       |
// | x[None, ::2]     | index(x, {newaxis, range(0, none, 2)})     |
// | x[::-1]          | index(x, {range(none, none, -1)})          |
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// One end of a range: a number (negative counts from the end), or `none` for the end of the
/// dimension.
struct RangeBound {
  RangeBound(std::int64_t number) : value(number) {}  // NOLINT: written range(1, none)
  RangeBound(NoneType) {}                             // NOLINT
  std::optional<std::int64_t> value;
};

/// A value: start, start + stride, ... until stop, which is excluded. Bounds out of range are
/// clamped, as in Python.
struct Range {
  RangeBound start, stop;
  std::int64_t stride = 1;
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
/// In index(): the whole dimension, `:`.
inline constexpr WholeType whole{};
/// In index(): a new dimension of size 1.
inline constexpr NewAxisType newaxis{};
/// In index(): all remaining dimensions, `...`.
inline constexpr EllipsisType ellipsis{};

/// A value: how index() treats one dimension.
class IndexItem {
 public:
  enum class Kind : std::uint8_t { kNumber, kRange, kNewAxis, kEllipsis };

  IndexItem(std::int64_t number) : kind_(Kind::kNumber), range_{number, none} {}  // NOLINT
  IndexItem(Range range) : kind_(Kind::kRange), range_(range) {}                  // NOLINT
  IndexItem(WholeType) : kind_(Kind::kRange), range_{none, none} {}               // NOLINT
  IndexItem(NewAxisType) : kind_(Kind::kNewAxis), range_{none, none} {}           // NOLINT
  IndexItem(EllipsisType) : kind_(Kind::kEllipsis), range_{none, none} {}         // NOLINT

  Kind kind() const { return kind_; }
  std::int64_t number() const { return *range_.start.value; }
  const Range& range() const { return range_; }

 private:
  Kind kind_;
  Range range_;  // for a number, the start
};

/// A part of `x`, selected by one item per dimension, in order. Dimensions beyond the items are
/// whole. A number selects one element and removes the dimension.
/// @error a number out of range; more items than dimensions; two ellipses; a stride of 0.
Tensor index(In x, const std::vector<IndexItem>& items);

}  // namespace meshard
