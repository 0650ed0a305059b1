// Convolutions by the number of their spatial dimensions, and transposed ones.
#pragma once
#include "meshard/ops/convolution.h"

namespace meshard {

/// convolution() with 1, 2 or 3 spatial dimensions, features last unless options.layout says
/// otherwise: `x` of shape [batch, width, features], [batch, height, width, features], [batch,
/// depth, height, width, features], the kernel [..., input features, output features].
///
///     conv2d(images, kernel, {.strides = {2, 2}, .padding = Padding::kSame})
/// @error another rank; as convolution().
Tensor conv1d(In x, In kernel, ConvolutionOptions options = {});
Tensor conv2d(In x, In kernel, ConvolutionOptions options = {});
Tensor conv3d(In x, In kernel, ConvolutionOptions options = {});

/// The transposed convolution (fractionally strided, "deconvolution"): options.strides are how many
/// times longer each spatial dimension becomes. kSame gives size * stride elements, kValid all that
/// the kernel reaches; listed padding counts on the dilated input. The kernel is not reversed, and
/// has its input features where convolution() has them, as in JAX's conv_transpose.
/// @error input_dilation or batch_groups is given; as convolution().
Tensor conv_transpose(In x, In kernel, ConvolutionOptions options = {});

}  // namespace meshard
