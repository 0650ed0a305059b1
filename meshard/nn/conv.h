// Convolution layers with 1, 2 or 3 spatial dimensions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/base/fields.h"
#include "meshard/nn/maker.h"
#include "meshard/ops/convolution.h"

namespace meshard::nn {

/// The parameters of a convolution: kernel [window..., in / groups, out], bias [out] or none. The
/// window has one size per spatial dimension.
struct Conv {
  Tensor kernel;
  std::optional<Tensor> bias;
  MESHARD_FIELDS(kernel, bias)
};

/// Options of make_conv().
struct ConvSizes {
  /// The number of groups of features that are convolved separately; `in` groups are a depthwise
  /// convolution. Pass the same number to conv().
  std::int64_t groups = 1;
  /// The names of the kernel's last dimensions, for AxisRules.
  std::string in = "channels", out = "filters";
  bool bias = true;
  Initializer kernel = init::lecun_normal();
};

/// Creates the parameters of a convolution, or of a transposed one, from `in` to `out` features.
///
/// @code
/// auto make_both = [](nn::Maker& make) {
///   return std::pair(nn::make_conv(make, {3, 3}, 3, 16), nn::make_batch_norm(make, 16));
/// };
/// auto [conv, norm] = nn::create({}, 1, make_both);
/// Tensor images = ones({8, 32, 32, 3});
/// nn::conv(conv, images, {.strides = {2}, .padding = Padding::kSame}).shape();  // [8,16,16,16]
/// @endcode
/// @error invalid argument: a window of no sizes or more than three; sizes that are not positive;
/// groups that do not divide `in` and `out`
Conv make_conv(Maker& make, const Dimensions& window, std::int64_t in, std::int64_t out,
               const ConvSizes& options = {}, SourceLocation where = SourceLocation::current());

/// The convolution of x [batch..., spatial..., in] with the kernel, plus the bias, in the dtype of
/// x. Any number of batch dimensions comes first, also none. The result is [batch..., spatial...,
/// out]. Another layout than the default needs exactly one batch dimension.
/// @error invalid argument: too few dimensions; as meshard::convolution()
Tensor conv(const Conv& params, const Tensor& x, const ConvolutionOptions& options = {},
            SourceLocation where = SourceLocation::current());

/// The transposed convolution, plus the bias: options.strides are the factors by which the spatial
/// dimensions grow. Shapes and errors as conv(); padding as meshard::conv_transpose().
Tensor conv_transpose(const Conv& params, const Tensor& x, const ConvolutionOptions& options = {},
                      SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
