#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/window_padding.h"

namespace meshard {

/// A value: the dimension order of a convolution's input, kernel and result, one letter per
/// dimension. N is the batch, C the features (in the kernel, I input and O output features), any
/// other letter a spatial dimension; all three must use the same letters for these. Default:
/// features last (`NHWC`, `HWIO`, `NHWC`).
///
///     {.input = "NCHW", .kernel = "OIHW", .result = "NCHW"}
struct ConvolutionLayout {
  std::string_view input = {}, kernel = {}, result = {};
};

/// How the kernel slides. Lists have an entry per spatial dimension, in the input's order; empty
/// means all ones.
struct ConvolutionOptions {
  Dimensions strides = {};  ///< step from one position of the kernel to the next
  WindowPadding padding = {};
  Dimensions input_dilation = {};   ///< step from one element of the input to the next; 2 doubles
                                    ///< it
  Dimensions kernel_dilation = {};  ///< step from one element of the kernel to the next
  std::int64_t feature_groups = 1;  ///< splits the features into this number of groups, convolved
                                    ///< separately
  std::int64_t batch_groups = 1;    ///< splits the batch; each part has its part of the kernel
  ConvolutionLayout layout = {};
};

/// The convolution of neural networks, for any number of spatial dimensions. At each position of
/// the kernel on the (dilated and padded) input it sums the products over the kernel's elements and
/// the input features. The kernel is not reversed. Operands are promoted to one dtype. conv1d,
/// conv2d, conv3d and conv_transpose cover the usual cases.
///
/// With g feature groups the input has g times the kernel's input features, and group i of the
/// features is convolved with group i of the kernel's output features. With g batch groups, group i
/// of the batch is, and the result has a batch of size / g.
/// @error ranks, features, groups or layouts that do not match.
Tensor convolution(In input, In kernel, ConvolutionOptions options = {});

}  // namespace meshard
