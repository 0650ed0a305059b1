// The type of a value in a compiled module, its layout in device memory, and its dtype.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/array/dtype/dtype.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"

namespace meshard {

/// The memory layout of an array (xla/layout.h).
struct HloLayout {
  /// Dimensions, fastest-varying first.
  std::vector<std::int64_t> minor_to_major;
  /// Tiles in which the fastest dimensions are stored, outermost first. A size of `kCombine` merges
  /// the dimension with the next faster one.
  std::vector<std::vector<std::int64_t>> tiles;
  /// 0: the bits of the element type.
  std::int64_t element_bits = 0;
  /// 0: main memory. TPU compilers use 1 for the fast on-chip memory, 2 for its scalar memory, and
  /// 5 for host memory.
  std::int64_t memory_space = 0;
  static constexpr std::int64_t kCombine = INT64_MIN;
  friend bool operator==(const HloLayout&, const HloLayout&) = default;
};

/// The type of an HLO value: an array, a tuple, or a token.
struct HloShape {
  pjrt::ElementType element = pjrt::ElementType::kInvalid;  // of an array; kToken for a token
  std::vector<std::int64_t> dimensions;
  bool is_tuple = false;
  std::vector<HloShape> tuple;
  /// None if the module does not specify it.
  std::optional<HloLayout> layout = std::nullopt;

  /// Number of elements of an array; at most 2^52, even if the sizes are damaged.
  std::int64_t element_count() const;
  /// Bytes of a dense value; for a tuple, the sum of its parts. Elements of less than one byte are
  /// packed. At most 2^52, like padded_byte_size().
  std::int64_t byte_size() const;
  /// Bytes in device memory, including the padding of the layout's tiles: `f32[2,100]` in tiles of
  /// (8,128) takes 4 KiB. Without a layout, the same as byte_size().
  std::int64_t padded_byte_size() const;
  /// True unless the layout specifies another memory space. For a tuple, the value for its first
  /// part.
  bool in_main_memory() const;
  /// `f32[2,3]`, `(f32[2], s32[])`
  std::string to_string() const;
  friend bool operator==(const HloShape&, const HloShape&) = default;
};

/// PJRT's element type for a dtype, and back: both have the same name in StableHLO.
pjrt::ElementType element_type_of(DType dtype);
/// The dtype. @error unimplemented for element types without a meshard dtype (2-bit and 4-bit
/// types).
Result<DType> dtype_of_element(pjrt::ElementType element);

}  // namespace meshard
