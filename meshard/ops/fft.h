// Discrete Fourier transforms.
#pragma once
#include <optional>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The kinds of transform of StableHLO's fft.
enum class FftKind : std::uint8_t {
  kFft,    ///< complex to complex
  kIfft,   ///< its inverse
  kRfft,   ///< real to complex: only elements 0 to n / 2 of the last dimension
  kIrfft,  ///< its inverse
};

template <>
struct EnumNames<FftKind> {
  static constexpr EnumName<FftKind> kNames[] = {{FftKind::kFft, "fft"},
                                                 {FftKind::kIfft, "ifft"},
                                                 {FftKind::kRfft, "rfft"},
                                                 {FftKind::kIrfft, "irfft"}};
};

/// The primitive: transforms the last lengths.size() dimensions (1 to 3), whose sizes are `lengths`
/// (for kIrfft the operand's last size is length / 2 + 1). Inverses divide by the lengths.
/// @error other sizes; a dtype that the kind does not accept.
Tensor fft(In x, FftKind kind, Dimensions lengths);

/// The array API standard's transforms along one dimension. Real numbers become complex where
/// needed; integers and narrow floats are computed in f32. With `n` the dimension is first
/// truncated or padded with zeros (irfft: `n` is the length of the result, by default 2 * (size -
/// 1)). Forward transforms are unscaled sums, inverses divide by n.
Tensor fft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor ifft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor rfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor irfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);

/// The transforms along several dimensions, by default all of them. rfftn and irfftn treat the last
/// listed dimension as rfft and irfft do. `last_length` of irfftn is the result's length there.
Tensor fftn(In x, DimensionList dimensions = {});
Tensor ifftn(In x, DimensionList dimensions = {});
Tensor rfftn(In x, DimensionList dimensions = {});
Tensor irfftn(In x, DimensionList dimensions = {},
              std::optional<std::int64_t> last_length = std::nullopt);

}  // namespace meshard
