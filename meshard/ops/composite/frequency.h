// What belongs to Fourier transforms besides them: the frequencies of their elements, and their
// order.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The frequency of each element of fft over n samples that are `spacing` apart, in cycles per unit
/// of the spacing: 0, 1, ..., then the negative ones up to -1, over n * spacing.
/// @error n below 1; a dtype that is not floating-point.
Tensor fftfreq(std::int64_t n, double spacing = 1, DType dtype = kDefaultFloat,
               SourceLocation where = SourceLocation::current());
/// The same of rfft: 0 to n / 2, over n * spacing.
Tensor rfftfreq(std::int64_t n, double spacing = 1, DType dtype = kDefaultFloat,
                SourceLocation where = SourceLocation::current());

/// Frequency 0 from the front to the middle (element size / 2) along each dimension, and back.
Tensor fftshift(In x, DimensionList dimensions = {});
Tensor ifftshift(In x, DimensionList dimensions = {});

}  // namespace meshard
