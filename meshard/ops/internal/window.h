// The arithmetic of windows that slide over a tensor: convolutions and reductions of windows.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/window_padding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard::internal {

/// The extent of `size` elements with dilation - 1 gaps between neighbors.
constexpr std::int64_t dilated_size(std::int64_t size, std::int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

/// A value: how windows slide, with an entry per dimension along which they slide.
struct Windows {
  Dimensions size;           ///< elements per window
  Dimensions stride;         ///< step from one window to the next
  Dimensions low;            ///< padding before the first element
  Dimensions high;           ///< padding after the last
  Dimensions dilation;       ///< of the window: step from one of its elements to the next
  Dimensions base_dilation;  ///< dilation of the operand

  std::size_t rank() const { return size.size(); }
  /// The distance from a window's first element to its last, inclusive.
  std::int64_t extent(std::size_t d) const { return dilated_size(size[d], dilation[d]); }
  /// The dilated and padded size of dimension d, for a tensor with `elements` in it.
  std::int64_t padded(std::size_t d, std::int64_t elements) const {
    return low[d] + dilated_size(elements, base_dilation[d]) + high[d];
  }
  /// The number of windows.
  std::int64_t count(std::size_t d, std::int64_t elements) const;
  /// True if dimension d is passed through unchanged.
  bool is_trivial(std::size_t d) const {
    return size[d] == 1 && stride[d] == 1 && low[d] == 0 && high[d] == 0 && base_dilation[d] == 1;
  }
};

/// The list; a single entry is repeated for all `rank` dimensions.
Dimensions for_each_dimension(Dimensions list, std::size_t rank);
WindowPadding for_each_dimension(WindowPadding padding, std::size_t rank);

/// The list; all ones if it is empty.
/// @error through throw_invalid, naming `op` and `what`, if it does not have `rank` entries.
Dimensions one_each(Dimensions list, std::size_t rank, std::string_view op, std::string_view what,
                    SourceLocation where);

/// Sets low and high for a tensor of these sizes. Padding::kSame is as in JAX and TensorFlow:
/// computed from the sizes without base_dilation.
/// @error a list of another length.
void resolve_padding(Windows& windows, const WindowPadding& padding, const Dimensions& sizes,
                     std::string_view op, SourceLocation where);

/// Checks the fields of `windows`: all lists have `rank` entries, sizes, strides and dilations are
/// 1 or more, and negative padding does not remove more elements than there are. `sizes` are those
/// of the operand.
/// @error through call.fail
void check_windows(const OpCall& call, const Windows& windows, const Dimensions& sizes);

/// The factors of a dimension along which windows slide, in the operand and in the result.
struct WindowFactors {
  DimensionFactors base, result;
};
WindowFactors window_factors(ShardingRuleBuilder& builder, const Windows& windows, std::size_t d,
                             std::int64_t base, std::int64_t result);

/// The padding as the array of StableHLO's `dense<[[low, high], ...]>`.
HostArray padding_array(const Windows& windows);

/// The padding for the transposed window operation, which slides over a cotangent dilated by the
/// stride. Its windows have the same extent; window i covers the results that element i of the
/// operand contributed to. `sizes` of the operand, `counts` of windows.
void transpose_padding(const Windows& windows, const Dimensions& sizes, const Dimensions& counts,
                       Dimensions& low, Dimensions& high);

// The elements of windows, one window position at a time: for derivatives of max and min of
// windows.

/// `x` dilated and padded with the scalar `padding`, as windows see it.
Tensor padded_for_windows(const Tensor& x, double padding, const Windows& windows);

/// For each position in a window, the elements of all windows there, of a tensor from
/// padded_for_windows. `counts` of windows.
std::vector<Tensor> window_elements(const Tensor& padded, const Windows& windows,
                                    const Dimensions& counts);

/// The same for a mask: true at the elements of a tensor of `shape`, false at padding and in gaps.
std::vector<Tensor> window_members(const Shape& shape, const Windows& windows,
                                   const Dimensions& counts);

/// For each window the index of its greatest (least) member, the first of equal ones.
Tensor chosen_places(const std::vector<Tensor>& elements, const std::vector<Tensor>& members,
                     bool greatest);

/// The transpose of padded_for_windows and window_elements. Each element of `values` (one per
/// window) is added at the position that element `chosen` of the window came from, in a tensor of
/// `shape`.
Tensor scattered_to_windows(const Tensor& values, const Tensor& chosen, const Windows& windows,
                            const Shape& shape);

// Sharding-rule factors of a dimension that an op makes longer or shorter.

/// The factors of one dimension in several tensors, for slice, pad and concat, which move parts of
/// it along the dimension. sizes[t] is its size in tensor t. The greatest common divisor of the
/// sizes is one factor, the most significant, whose shards exchange parts (kPermutation); the
/// remaining factor of each size must be whole.
std::vector<DimensionFactors> resized_dimension(ShardingRuleBuilder& builder,
                                                std::span<const std::int64_t> sizes);

/// The factors of a tensor and of a box cut from it: dimensions of equal size share a factor.
struct BoxFactors {
  TensorFactors whole, box;
};
BoxFactors box_factors(ShardingRuleBuilder& builder, const Shape& whole, const Shape& box);

}  // namespace meshard::internal
