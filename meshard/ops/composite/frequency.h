// Helpers for Fourier transforms: frequencies, shifts, and transforms of Hermitian-symmetric data.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The frequency of each element of fft over n samples with distance `spacing`. In cycles per unit
/// of the spacing: 0, 1, ..., then the negative ones up to -1, divided by n * spacing.
/// @error n below 1; a dtype that is not floating-point.
Tensor fftfreq(std::int64_t n, double spacing = 1, DType dtype = kDefaultFloat,
               SourceLocation where = SourceLocation::current());
/// The same for rfft: 0 to n / 2, divided by n * spacing.
Tensor rfftfreq(std::int64_t n, double spacing = 1, DType dtype = kDefaultFloat,
                SourceLocation where = SourceLocation::current());

/// Moves frequency 0 from the front to the middle (element size / 2) along each dimension;
/// ifftshift moves it back.
Tensor fftshift(In x, DimensionList dimensions = {});
Tensor ifftshift(In x, DimensionList dimensions = {});

/// The transform of Hermitian-symmetric samples, x[-i] = conj(x[i]), of which the first half is
/// given. The result is real, of n elements (default 2 * (size - 1)). ihfft is the inverse, from
/// real numbers to the first half of a symmetric array.
Tensor hfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor ihfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);

}  // namespace meshard
