// The type of a value in a compiled module, and how it lies in a device's memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/pjrt/element_type.h"

namespace meshard::pjrt {

/// How an array lies in memory (xla/layout.h).
struct HloLayout {
  /// Dimensions, the fastest first.
  std::vector<std::int64_t> minor_to_major;
  /// Blocks in which the fastest dimensions are stored, the outermost first. A size of
  /// `kCombine` joins the dimension with the next faster one.
  std::vector<std::vector<std::int64_t>> tiles;
  /// 0: those of the element type.
  std::int64_t element_bits = 0;
  /// 0: main memory. TPU compilers use 1 for the fast memory on the chip, 2 for its scalar memory,
  /// and 5 for the host's.
  std::int64_t memory_space = 0;
  static constexpr std::int64_t kCombine = INT64_MIN;
  friend bool operator==(const HloLayout&, const HloLayout&) = default;
};

/// The type of an HLO value: an array, a tuple, or a token.
struct HloShape {
  ElementType element = ElementType::kInvalid;  // of an array; kToken of a token
  std::vector<std::int64_t> dimensions;
  bool is_tuple = false;
  std::vector<HloShape> tuple;
  /// None if the module does not say.
  std::optional<HloLayout> layout = std::nullopt;

  /// Elements of an array; at most 2^52, also of damaged sizes.
  std::int64_t element_count() const;
  /// Bytes of a dense value; a tuple's is the sum of its parts. Elements of less than a byte are
  /// packed. At most 2^52, as of the next one.
  std::int64_t byte_size() const;
  /// Bytes in the device's memory with the padding of the layout's tiles: `f32[2,100]` in tiles of
  /// (8,128) takes 4 KiB. Without a layout as byte_size().
  std::int64_t padded_byte_size() const;
  /// True unless the layout names another memory. A tuple's is that of its first part.
  bool in_main_memory() const;
  /// `f32[2,3]`, `(f32[2], s32[])`
  std::string to_string() const;
  friend bool operator==(const HloShape&, const HloShape&) = default;
};

}  // namespace meshard::pjrt
