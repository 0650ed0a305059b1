// Initializers by the variance of a layer's results, and others of particular layers.
#pragma once
#include <cstdint>

#include "meshard/nn/initializer.h"

namespace meshard::nn::init {

/// The number by which variance_scaling() divides.
enum class Fan : std::uint8_t {
  kIn,             ///< Fans::in
  kOut,            ///< Fans::out
  kAverage,        ///< (in + out) / 2
  kGeometricMean,  ///< sqrt(in * out)
};
/// The distribution of variance_scaling().
enum class Distribution : std::uint8_t {
  kTruncatedNormal,  ///< a normal, truncated at two standard deviations, with the variance after
                     ///< truncation
  kNormal,
  kUniform,
};

/// Mean 0 and variance scale / fan. With a truncated normal, scales 1 and 2 and the fan kIn are the
/// `lecun_normal` and `he_normal` of JAX and flax, scale 1 and kAverage their `glorot_normal`;
/// these of this library are not truncated.
/// @error invalid argument unless the scale is positive
Initializer variance_scaling(double scale, Fan fan, Distribution distribution,
                             SourceLocation where = SourceLocation::current());

/// Normal with mean 0, truncated at `low` and `high` standard deviations. `deviation` is the
/// standard deviation before truncation.
/// @error invalid argument unless low < high
Initializer truncated_normal(double deviation, double low, double high,
                             SourceLocation where = SourceLocation::current());

/// Kernels of convolutions, [window..., in, out], that are zero except for an orthogonal matrix in
/// the middle of the window, times `scale` (Xiao et al.: Dynamical Isometry and a Mean Field Theory
/// of CNNs, 2018).
/// @error when it is called: a rank that is not 3 to 5, or more inputs than outputs
Initializer delta_orthogonal(double scale = 1);

}  // namespace meshard::nn::init
