#pragma once
#include <optional>
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// A value: where a convolution's operands and result keep their dimensions, as one letter each: N
/// batch, C features (of the kernel I into and O out of it), any other letter a spatial dimension,
/// which the three must name alike. Empty: features last (`NHWC`, `HWIO`, `NHWC`).
///
///     {.input = "NCHW", .kernel = "OIHW", .result = "NCHW"}
struct ConvolutionLayout {
  std::string_view input = {}, kernel = {}, result = {};
};

/// How a kernel slides; lists have an entry for each spatial dimension, in the input's order, or
/// none for all ones.
struct ConvolutionOptions {
  Dimensions strides = {};  ///< from one place of the kernel to the next
  WindowPadding padding = {};
  Dimensions input_dilation = {};   ///< from one element of the input to the next; 2 doubles it
  Dimensions kernel_dilation = {};  ///< from one element of the kernel to the next
  std::int64_t feature_groups = 1;  ///< the features are cut into so many parts, convolved apart
  std::int64_t batch_groups = 1;    ///< the batch is, each part with its part of the kernel
  ConvolutionLayout layout = {};
};

struct ConvolutionAttributes {
  /// Batch, feature, spatial dimensions; of the kernel: output feature, input feature, spatial.
  Dimensions input, kernel, result;
  Dimensions strides, low, high, input_dilation, kernel_dilation;
  std::int64_t feature_groups = 1, batch_groups = 1;
  MESHARD_FIELDS(input, kernel, result, strides, low, high, input_dilation, kernel_dilation,
                 feature_groups, batch_groups)
};

/// The convolution of neural networks: for each place of the kernel on the (dilated and padded)
/// input the sum of products over its elements and the input features. The kernel is not reversed.
/// Operands are promoted to one dtype. conv1d, conv2d, conv3d and conv_transpose name the usual
/// cases.
///
/// With g feature groups the input has g times the kernel's input features, and part i of the
/// features meets part i of the kernel's output features. With g batch groups part i of the batch
/// does, and the result has a batch of size / g.
/// @error ranks, features, groups or layouts that do not go together.
Tensor convolution(In input, In kernel, ConvolutionOptions options = {});

}  // namespace meshard
