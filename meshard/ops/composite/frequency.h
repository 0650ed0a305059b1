// What belongs to Fourier transforms besides them: the frequencies of their elements, their order,
// and transforms of symmetric samples.
#pragma once
#include <cstdint>
#include <optional>

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

/// The transform of samples that are symmetric, x[-i] = conj(x[i]), of which only the first half is
/// given: real numbers, n of them (2 * (size - 1) unless given). ihfft is the inverse, from real
/// numbers to the first half of what is symmetric.
Tensor hfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor ihfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);

}  // namespace meshard
