// The largest and the mean element of windows.
#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// How the windows of pooling slide; lists have an entry for each spatial dimension.
struct PoolOptions {
  Dimensions strides = {};  ///< left out: the window, so that windows lie side by side
  WindowPadding padding = {};
  Dimensions dilation = {};      ///< from one element of a window to the next
  std::string_view layout = {};  ///< a letter for each dimension, N and C are not pooled: `NCHW`.
                                 ///< Left out: the first is the batch, the last the features.
  bool count_padding = true;  ///< avg_pool divides by the window's size; else by what is no padding
};

/// The largest element of each window of spatial dimensions: `max_pool(x, {2, 2})` halves height
/// and width of `x` [batch, height, width, features]. Padding is never the largest.
/// @error a window with another number of sizes than there are spatial dimensions.
Tensor max_pool(In x, Dimensions window, PoolOptions options = {});
/// The mean of each window. Integers and bools are computed in f32.
Tensor avg_pool(In x, Dimensions window, PoolOptions options = {});

}  // namespace meshard
