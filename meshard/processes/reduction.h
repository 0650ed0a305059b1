// Reductions of communication between processes: which ones exist, and their arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "meshard/array/dtype/dtype.h"
#include "meshard/base/enum_names.h"
#include "meshard/base/result.h"

namespace meshard {

/// How the elements of a reduction are combined.
enum class Reduction : std::uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };
/// The number of reductions.
inline constexpr int kReductionCount = 7;

template <>
struct EnumNames<Reduction> {
  static constexpr EnumName<Reduction> kNames[] = {
      {Reduction::kSum, "sum"}, {Reduction::kProduct, "product"}, {Reduction::kMin, "min"},
      {Reduction::kMax, "max"}, {Reduction::kAnd, "and"},         {Reduction::kOr, "or"},
      {Reduction::kXor, "xor"}};
};

/// Parses the output of to_string.
/// @error invalid argument for any other text
Result<Reduction> parse_reduction(std::string_view text);

/// Checks that elements of `type` can be combined by `op`: min and max need an order, so not
/// complex numbers; and, or and xor need bits, so only integers and bool. The sum of bools is `or`,
/// their product `and`, as in StableHLO.
/// @error invalid argument, naming both
Result<void> check_reduction(Reduction op, DType type);

/// True for the 16-bit and 8-bit floats, whose sums and products are computed in f32 and rounded
/// once.
constexpr bool is_narrow_float(DType type) {
  return is_floating(type) && type != DType::f32 && type != DType::f64;
}

/// The type in which elements of `type` are combined: f32 for narrow floats, else their own.
constexpr DType wide_type(DType type) { return is_narrow_float(type) ? DType::f32 : type; }

/// Combines blocks of `count` elements each, in their order, into `out`, which may be one of the
/// blocks. Integers wrap around. Min and max of floats are NaN if an operand is NaN, and -0 is less
/// than +0.
/// @pre check_reduction(op, type) succeeds; there is at least one block
void combine_blocks(Reduction op, DType type, std::span<const void* const> blocks, void* out,
                    std::size_t count);

/// combine_blocks() without rounding: `out` receives elements of wide_type(type), and is none of
/// the blocks unless these are the same type.
void combine_blocks_wide(Reduction op, DType type, std::span<const void* const> blocks, void* out,
                         std::size_t count);

/// Rounds elements of wide_type(type) to `type`.
void round_wide(DType type, const void* wide, void* out, std::size_t count);

}  // namespace meshard
