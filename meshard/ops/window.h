// The arithmetic of windows that slide over a tensor: convolutions and reductions of windows.
#pragma once
#include <string_view>

#include "meshard/graph/op_def.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// The size of `size` elements with dilation - 1 gaps between neighbours.
constexpr std::int64_t dilated_size(std::int64_t size, std::int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

/// A value: how windows slide, an entry for each dimension that they slide along.
struct Windows {
  Dimensions size;           ///< elements of a window
  Dimensions stride;         ///< from one window to the next
  Dimensions low;            ///< padding before the first element
  Dimensions high;           ///< padding after the last
  Dimensions dilation;       ///< of the window: from one of its elements to the next
  Dimensions base_dilation;  ///< of what they slide over

  std::size_t rank() const { return size.size(); }
  /// From a window's first element to its last.
  std::int64_t extent(std::size_t d) const { return dilated_size(size[d], dilation[d]); }
  /// What the windows slide over in dimension d, of a tensor with `elements` there.
  std::int64_t padded(std::size_t d, std::int64_t elements) const {
    return low[d] + dilated_size(elements, base_dilation[d]) + high[d];
  }
  /// How many windows there are.
  std::int64_t count(std::size_t d, std::int64_t elements) const;
  /// True if dimension d is passed through as it is.
  bool is_trivial(std::size_t d) const {
    return size[d] == 1 && stride[d] == 1 && low[d] == 0 && high[d] == 0 && base_dilation[d] == 1;
  }
};

/// Ones in place of an empty list; else the list itself.
/// @error through throw_invalid, naming `op` and `what`, if it has another number of entries.
Dimensions one_each(Dimensions list, std::size_t rank, std::string_view op, std::string_view what,
                    SourceLocation where);

/// Fills low and high for a tensor of these sizes. Padding::kSame as in JAX and TensorFlow: it
/// counts the sizes without base_dilation.
/// @error a list of another length.
void resolve_padding(Windows& windows, const WindowPadding& padding, const Dimensions& sizes,
                     std::string_view op, SourceLocation where);

/// Checks that all lists have `rank` entries and sizes, strides and dilations are 1 or more, and
/// that no padding is more negative than what there is. `sizes` of what the windows slide over.
/// @error through call.fail
void check_windows(const OpCall& call, const Windows& windows, const Dimensions& sizes);

/// The factors of a dimension that windows slide along, of the tensor and of the result.
struct WindowFactors {
  DimensionFactors base, result;
};
WindowFactors window_factors(ShardingRuleBuilder& builder, const Windows& windows, std::size_t d,
                             std::int64_t base, std::int64_t result);

/// `dense<[[low, high], ...]>` of StableHLO, as an array.
HostArray padding_array(const Windows& windows);

/// The padding of a cotangent (dilated by the stride) of which the windows, of the same extent, are
/// the elements' own: the transpose of sliding. `sizes` of the tensor, `counts` of windows.
void transpose_padding(const Windows& windows, const Dimensions& sizes, const Dimensions& counts,
                       Dimensions& low, Dimensions& high);

}  // namespace meshard
