// Reductions of windows that slide over a tensor, and the way back.
#pragma once
#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// How windows slide. Lists have an entry per dimension of the tensor; empty means all ones.
struct WindowOptions {
  Dimensions strides = {};  ///< step from one window to the next
  WindowPadding padding = {};
  Dimensions base_dilation = {};    ///< step from one element of the tensor to the next
  Dimensions window_dilation = {};  ///< step from one element of a window to the next
};

/// The sum (largest, smallest element) of each sliding window. `window` is its size in each
/// dimension of `x`. Padding and the gaps of a dilation do not count; a window that contains only
/// padding is 0 (the lowest, highest value of the dtype).
///
///     reduce_window_max(x, {1, 2, 2, 1}, {.strides = {1, 2, 2, 1}})  // max_pool(x, {2, 2}), NHWC
///
/// The cotangent of max and min goes to the first of equal elements of a window, in row-major
/// order. Their second derivative records nodes for every element of a window.
/// @error lists of another length; a size, stride or dilation below 1; max and min of complex
/// numbers.
Tensor reduce_window_sum(In x, Dimensions window, WindowOptions options = {});
Tensor reduce_window_max(In x, Dimensions window, WindowOptions options = {});
Tensor reduce_window_min(In x, Dimensions window, WindowOptions options = {});

/// Which element of a window is selected; the first in row-major order if several are equal.
enum class WindowSelect : std::uint8_t { kGreatest, kLeast };

template <>
struct EnumNames<WindowSelect> {
  static constexpr EnumName<WindowSelect> kNames[] = {{WindowSelect::kGreatest, "greatest"},
                                                      {WindowSelect::kLeast, "least"}};
};

/// Attributes of the op select_and_scatter_add.
struct SelectAndScatterAddAttributes {
  WindowSelect select = WindowSelect::kGreatest;
  Dimensions window, strides, low, high;  ///< an entry for each dimension
  MESHARD_FIELDS(select, window, strides, low, high)
};

/// Adds each element of `source` at the position that its window of `x` selects. The result has the
/// type of `x` and is zero elsewhere. This routes the cotangents of max_pool. Padding is never
/// selected.
/// @error `source` does not have one element per window.
Tensor select_and_scatter_add(In x, In source, SelectAndScatterAddAttributes windows);

}  // namespace meshard
