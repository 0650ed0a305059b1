// Reductions of windows that slide over a tensor.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

struct ReduceWindowAttributes {
  Dimensions window, strides, low, high, base_dilation, window_dilation;
  MESHARD_FIELDS(window, strides, low, high, base_dilation, window_dilation)
};

/// How windows slide; lists have an entry for each dimension of the tensor, or none for all ones.
struct WindowOptions {
  Dimensions strides = {};  ///< from one window to the next
  WindowPadding padding = {};
  Dimensions base_dilation = {};    ///< from one element of the tensor to the next
  Dimensions window_dilation = {};  ///< from one element of a window to the next
};

/// The sum (largest, smallest element) of each window of `window` elements, a size for each
/// dimension of `x`. What is padded or lies in gaps of the dilation does not count; a window of
/// nothing but padding is 0 (the lowest, highest value of the dtype).
///
///     reduce_window_max(x, {1, 2, 2, 1}, {.strides = {1, 2, 2, 1}})  // max_pool(x, {2, 2}), NHWC
///
/// Of equal elements the first one of a window, in row-major order, gets the cotangent of max and
/// min. The second derivative of these records nodes for every element of a window.
/// @error lists of another length; a size, stride or dilation below 1; max and min of complex
/// numbers.
Tensor reduce_window_sum(In x, Dimensions window, WindowOptions options = {});
Tensor reduce_window_max(In x, Dimensions window, WindowOptions options = {});
Tensor reduce_window_min(In x, Dimensions window, WindowOptions options = {});

}  // namespace meshard
