// Reductions of windows that slide over a tensor.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

struct ReduceWindowAttributes {
  Dimensions window, strides, low, high, base_dilation, window_dilation;
  MESHARD_FIELDS(window, strides, low, high, base_dilation, window_dilation)
};

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

}  // namespace meshard
