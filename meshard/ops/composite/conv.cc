#include "meshard/ops/composite/conv.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
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

namespace {

// A window over all dimensions, including batch and features.
struct Pool {
  Dimensions window;
  WindowOptions options;
};

Pool pool_over(std::string_view name, const Tensor& x, Dimensions& window, PoolOptions given,
               SourceLocation where) {
  int rank = x.shape().rank();
  Dimensions spatial;
  if (!given.layout.empty() && given.layout.size() != static_cast<std::size_t>(rank))
    throw_invalid(where, "[", name, "] the layout \"", given.layout, "\" has ", given.layout.size(),
                  " letters, but ", x.type(), " has rank ", rank);
  for (int d = 0; d < rank; ++d) {
    bool kept = given.layout.empty() ? d == 0 || d == rank - 1
                                     : given.layout[static_cast<std::size_t>(d)] == 'N' ||
                                           given.layout[static_cast<std::size_t>(d)] == 'C';
    if (!kept) spatial.push_back(d);
  }
  window = for_each_dimension(std::move(window), spatial.size());
  given.strides = for_each_dimension(std::move(given.strides), spatial.size());
  given.dilation = for_each_dimension(std::move(given.dilation), spatial.size());
  given.padding = for_each_dimension(std::move(given.padding), spatial.size());
  if (window.size() != spatial.size())
    throw_invalid(where, "[", name, "] the window [", join(window, ", "), "] has ", window.size(),
                  " sizes, but ", x.type(), " has ", spatial.size(), " spatial dimensions");
  Dimensions strides = given.strides.empty() ? window : given.strides;
  strides = one_each(strides, spatial.size(), name, "strides", where);
  Dimensions dilation = one_each(given.dilation, spatial.size(), name, "dilation", where);
  auto all = static_cast<std::size_t>(rank);
  Pool pool{Dimensions(all, 1),
            {.strides = Dimensions(all, 1), .window_dilation = Dimensions(all, 1)}};
  WindowPadding::Pairs pairs(all, {0, 0});
  if (given.padding.is_listed() && given.padding.pairs().size() != spatial.size())
    throw_invalid(where, "[", name, "] padding has ", given.padding.pairs().size(), " pairs for ",
                  spatial.size(), " spatial dimensions");
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    auto d = static_cast<std::size_t>(spatial[i]);
    pool.window[d] = window[i];
    pool.options.strides[d] = strides[i];
    pool.options.window_dilation[d] = dilation[i];
    if (given.padding.is_listed()) pairs[d] = given.padding.pairs()[i];
  }
  pool.options.padding =
      given.padding.is_listed() ? WindowPadding(std::move(pairs)) : given.padding;
  return pool;
}

}  // namespace

Tensor max_pool(In x, Dimensions window, PoolOptions options) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("max_pool", x);
  Pool pool = pool_over("max_pool", operand, window, options, effective_source(x.where));
  return reduce_window_max(operand, std::move(pool.window), std::move(pool.options));
}

Tensor avg_pool(In x, Dimensions window, PoolOptions options) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("avg_pool", x);
  Pool pool = pool_over("avg_pool", operand, window, options, effective_source(x.where));
  DType dtype = float_result_dtype(operand.dtype());
  operand = for_computation(operand);
  Tensor total = reduce_window_sum(operand, pool.window, pool.options);
  std::int64_t count = 1;
  for (std::int64_t size : window) count *= size;
  if (options.count_padding) return astype(divide(total, count), dtype);
  Tensor present = reduce_window_sum(ones_like(operand), pool.window, pool.options);
  return astype(divide(total, present), dtype);
}

}  // namespace meshard
