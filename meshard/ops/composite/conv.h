// Convolutions with 1, 2 or 3 spatial dimensions, and transposed convolutions.
#pragma once
#include "meshard/ops/convolution.h"

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

}  // namespace meshard
