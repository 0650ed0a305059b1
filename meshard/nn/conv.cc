#include "meshard/nn/conv.h"

#include <algorithm>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/nn/linear.h"
#include "meshard/ops/all.h"

namespace meshard::nn {
namespace {

// Applies `function` to x with exactly one batch dimension, and adds the bias.
template <class F>
Tensor with_one_batch(std::string_view name, const Conv& params, const Tensor& x,
                      const ConvolutionOptions& options, const F& function) {
  int rank = params.kernel.rank();
  bool own_layout = !options.layout.input.empty() || !options.layout.kernel.empty() ||
                    !options.layout.result.empty();
  if (x.rank() < rank - 1 || (own_layout && x.rank() != rank))
    throw_invalid(x.where(), "[nn.", name, "] a kernel ", params.kernel.type(), " convolves ",
                  own_layout ? "one batch dimension, " : "any batch dimensions, ", rank - 2,
                  " spatial dimensions and the features; x is ", x.type());
  const Dimensions given = x.shape().sizes();
  auto batch = given.begin() + (x.rank() - (rank - 1));
  Tensor one = x;
  if (x.rank() != rank) {
    std::int64_t count = 1;
    for (auto size = given.begin(); size != batch; ++size) count *= *size;
    Dimensions sizes{count};
    for (auto size = batch; size != given.end(); ++size) sizes.push_back(*size);
    one = reshape(x, Shape(std::move(sizes)));
  }
  Tensor y = function(one, match_dtype(params.kernel, x));
  if (params.bias) {
    Tensor bias = match_dtype(*params.bias, x);
    std::size_t features = options.layout.result.find('C');
    if (features != std::string_view::npos && features + 1 != static_cast<std::size_t>(rank)) {
      Dimensions along(static_cast<std::size_t>(rank), 1);
      along[features] = bias.dim(0);
      bias = reshape(bias, Shape(std::move(along)));
    }
    y = y + bias;
  }
  if (x.rank() == rank) return y;
  Dimensions sizes;
  for (auto size = given.begin(); size != batch; ++size) sizes.push_back(*size);
  for (int d = 1; d < rank; ++d) sizes.push_back(y.dim(d));
  return reshape(y, Shape(std::move(sizes)));
}

}  // namespace

Conv make_conv(Maker& make, const Dimensions& window, std::int64_t in, std::int64_t out,
               const ConvSizes& options, SourceLocation where) {
  CallScope line(where, "in nn::make_conv");
  if (window.empty() || window.size() > 3)
    throw_invalid(SourceLocation{}, "[nn.make_conv] the window [", join(window, ", "), "] has ",
                  window.size(), " sizes; there are 1, 2 or 3 spatial dimensions");
  if (std::any_of(window.begin(), window.end(), [](std::int64_t size) { return size < 1; }) ||
      in < 1 || out < 1)
    throw_invalid(SourceLocation{}, "[nn.make_conv] the window [", join(window, ", "), "], ", in,
                  " input and ", out, " output features must be positive");
  if (options.groups < 1 || in % options.groups != 0 || out % options.groups != 0)
    throw_invalid(SourceLocation{}, "[nn.make_conv] ", options.groups, " groups do not divide ", in,
                  " input and ", out, " output features");
  Dimensions sizes = window;
  std::vector<DimensionSpec> names(window.size());
  std::int64_t places = 1;
  for (std::int64_t size : window) places *= size;
  sizes.push_back(in / options.groups);
  sizes.push_back(out);
  names.emplace_back(options.in);
  names.emplace_back(options.out);
  Conv params;
  params.kernel = make(Shape(std::move(sizes)), PartitionSpec(std::move(names)), options.kernel,
                       {places * (in / options.groups), places * out});
  if (options.bias) params.bias = make({out}, P(options.out), init::zeros());
  return params;
}

Tensor conv(const Conv& params, const Tensor& x, const ConvolutionOptions& options,
            SourceLocation where) {
  CallScope line(where, "in nn::conv");
  return with_one_batch("conv", params, x, options, [&](const Tensor& one, const Tensor& kernel) {
    return meshard::convolution(one, kernel, options);
  });
}

Tensor conv_transpose(const Conv& params, const Tensor& x, const ConvolutionOptions& options,
                      SourceLocation where) {
  CallScope line(where, "in nn::conv_transpose");
  return with_one_batch("conv_transpose", params, x, options,
                        [&](const Tensor& one, const Tensor& kernel) {
                          return meshard::conv_transpose(one, kernel, options);
                        });
}

}  // namespace meshard::nn
