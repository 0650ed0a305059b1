// Maximum and average pooling.
#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// How pooling windows slide; lists have one entry per spatial dimension, or a single one for all.
struct PoolOptions {
  Dimensions strides = {};  ///< default: the window's size, so that windows do not overlap
  WindowPadding padding = {};
  Dimensions dilation = {};      ///< step from one element of a window to the next
  std::string_view layout = {};  ///< one letter per dimension; N and C are not pooled: `NCHW`.
                                 ///< Default: batch first, features last.
  bool count_padding = true;  ///< avg_pool divides by the window's size; if false, by the number of
                              ///< elements that are not padding
};

/// Max pooling: the largest element of each window of the spatial dimensions. `max_pool(x, {2, 2})`
/// halves height and width of `x` [batch, height, width, features]; so does `max_pool(x, {2})`: a
/// single size is that of all spatial dimensions. Padding is never the largest.
/// @error a window whose number of sizes differs from the number of spatial dimensions.
Tensor max_pool(In x, Dimensions window, PoolOptions options = {});
/// Average pooling: the mean of each window. Integers and bools are computed in f32.
Tensor avg_pool(In x, Dimensions window, PoolOptions options = {});

}  // namespace meshard
