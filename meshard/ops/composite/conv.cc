#include "meshard/ops/composite/conv.h"

#include <algorithm>

#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/window.h"

namespace meshard {
using namespace internal;
namespace {

Tensor conv_of_rank(std::string_view name, int spatial, const In& x, const In& kernel,
                    ConvolutionOptions options) {
  SourceScope line(x.where);
  Tensor input = operand_tensor(name, x);
  if (input.shape().rank() != spatial + 2)
    throw_invalid(effective_source(x.where), "[", name, "] takes tensors of rank ", spatial + 2,
                  ": a batch, ", spatial, " spatial dimensions, features; not ", input.type());
  return convolution(input, kernel, std::move(options));
}

// The kernel's dimension number of spatial dimension `d`.
int kernel_dimension(const ConvolutionLayout& layout, std::size_t d) {
  if (layout.kernel.empty()) return static_cast<int>(d);
  std::size_t left = d;
  for (char letter : layout.input) {
    if (letter == 'N' || letter == 'C') continue;
    if (left-- == 0) return static_cast<int>(layout.kernel.find(letter));
  }
  return static_cast<int>(d);
}

// The padding of the dilated input, as in JAX's lax.conv_transpose: for kSame it gives size *
// stride elements, for kValid every element that the kernel reaches.
std::pair<std::int64_t, std::int64_t> transposed_padding(Padding rule, std::int64_t extent,
                                                         std::int64_t stride) {
  std::int64_t both = extent + stride - 2;
  std::int64_t before = extent - 1;
  if (rule == Padding::kValid)
    both += std::max<std::int64_t>(extent - stride, 0);
  else if (stride <= extent - 1)
    before = rule == Padding::kSame ? (both + 1) / 2 : both / 2;
  return {before, both - before};
}

}  // namespace

Tensor conv1d(In x, In kernel, ConvolutionOptions options) {
  return conv_of_rank("conv1d", 1, x, kernel, std::move(options));
}
Tensor conv2d(In x, In kernel, ConvolutionOptions options) {
  return conv_of_rank("conv2d", 2, x, kernel, std::move(options));
}
Tensor conv3d(In x, In kernel, ConvolutionOptions options) {
  return conv_of_rank("conv3d", 3, x, kernel, std::move(options));
}

Tensor conv_transpose(In x, In kernel, ConvolutionOptions options) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor input = operand_tensor("conv_transpose", x);
  Tensor weights = operand_tensor("conv_transpose", kernel);
  if (!options.input_dilation.empty() || options.batch_groups != 1)
    throw_invalid(where,
                  "[conv_transpose] input_dilation and batch_groups are not supported: use strides "
                  "to dilate the input; batch_groups is ",
                  options.batch_groups);
  int rank = input.shape().rank();
  if (rank < 2 || weights.shape().rank() != rank)
    throw_invalid(where, "[conv_transpose] the input ", input.type(), " and the kernel ",
                  weights.type(),
                  " must have the same rank: a batch, features and spatial dimensions");
  auto spatial = static_cast<std::size_t>(rank) - 2;
  Dimensions stretched = one_each(for_each_dimension(std::move(options.strides), spatial), spatial,
                                  "conv_transpose", "strides", where);
  Dimensions dilation = one_each(for_each_dimension(options.kernel_dilation, spatial), spatial,
                                 "conv_transpose", "kernel_dilation", where);
  if (!options.padding.is_listed()) {
    WindowPadding::Pairs pairs;
    for (std::size_t d = 0; d < spatial; ++d) {
      std::int64_t size = weights.shape()[kernel_dimension(options.layout, d)];
      pairs.push_back(transposed_padding(options.padding.rule(), dilated_size(size, dilation[d]),
                                         stretched[d]));
    }
    options.padding = std::move(pairs);
  }
  options.strides = {};
  options.input_dilation = std::move(stretched);
  return convolution(input, weights, std::move(options));
}

}  // namespace meshard
