// Convolutions with 1, 2 or 3 spatial dimensions, and transposed convolutions.
#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/convolution.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// convolution() with 1, 2 or 3 spatial dimensions; the default layout has the features last. `x`
/// is [batch, width, features], [batch, height, width, features] or [batch, depth, height, width,
/// features], the kernel [..., input features, output features]. options.layout changes that.
///
///     conv2d(images, kernel, {.strides = {2, 2}, .padding = Padding::kSame})
/// @error another rank; as convolution().
Tensor conv1d(In x, In kernel, ConvolutionOptions options = {});
Tensor conv2d(In x, In kernel, ConvolutionOptions options = {});
Tensor conv3d(In x, In kernel, ConvolutionOptions options = {});

/// The transposed (fractionally strided) convolution, also called deconvolution. options.strides
/// are the factors by which the spatial dimensions grow. kSame gives size * stride elements, kValid
/// all elements that the kernel reaches; listed padding applies to the dilated input. The kernel is
/// not reversed, and has its input features in the same dimension as for convolution(), as in JAX's
/// conv_transpose.
/// @error input_dilation or batch_groups is given; as convolution().
Tensor conv_transpose(In x, In kernel, ConvolutionOptions options = {});

// Maximum and average pooling.

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
/// single size applies to all spatial dimensions. Padding is never the largest.
/// @error a window whose number of sizes differs from the number of spatial dimensions.
Tensor max_pool(In x, Dimensions window, PoolOptions options = {});
/// Average pooling: the mean of each window. Integers and bools are computed in f32.
Tensor avg_pool(In x, Dimensions window, PoolOptions options = {});

}  // namespace meshard
