// Discrete Fourier transforms.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Which transform StableHLO's fft does.
enum class FftKind : std::uint8_t {
  kFft,    ///< complex to complex
  kIfft,   ///< its inverse
  kRfft,   ///< real to complex: of the last dimension only elements 0 to n / 2
  kIrfft,  ///< its inverse
};

template <>
struct EnumNames<FftKind> {
  static constexpr std::array kNames{std::pair{FftKind::kFft, std::string_view("fft")},
                                     std::pair{FftKind::kIfft, std::string_view("ifft")},
                                     std::pair{FftKind::kRfft, std::string_view("rfft")},
                                     std::pair{FftKind::kIrfft, std::string_view("irfft")}};
};

struct FftAttributes {
  FftKind kind = FftKind::kFft;
  Dimensions lengths;  ///< of the last dimensions, which are transformed: 1 to 3 of them
  MESHARD_FIELDS(kind, lengths)
};

/// The primitive: transforms the last lengths.size() dimensions (1 to 3), which have these lengths
/// (of kIrfft the operand's last has length / 2 + 1). Inverses divide by the lengths.
/// @error other sizes; a dtype that the kind does not take.
Tensor fft(In x, FftKind kind, Dimensions lengths);

/// The transforms of the array API standard along one dimension. Real numbers become complex where
/// needed, integers and narrow floats are computed in f32. With `n` the dimension is cut or padded
/// with zeros first (irfft: `n` is the length of the result, 2 * (size - 1) unless given).
/// Forward transforms are plain sums, inverses divide by n.
Tensor fft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor ifft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor rfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);
Tensor irfft(In x, std::optional<std::int64_t> n = std::nullopt, std::int64_t dimension = -1);

/// Along several dimensions: all of them, or those named; rfftn and irfftn treat the last named as
/// rfft and irfft do. `last_length` of irfftn is the result's length there.
Tensor fftn(In x, DimensionList dimensions = {});
Tensor ifftn(In x, DimensionList dimensions = {});
Tensor rfftn(In x, DimensionList dimensions = {});
Tensor irfftn(In x, DimensionList dimensions = {},
              std::optional<std::int64_t> last_length = std::nullopt);

}  // namespace meshard
