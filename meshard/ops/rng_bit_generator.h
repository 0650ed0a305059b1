#pragma once
#include <cstdint>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The algorithm that rng_bit_generator uses.
enum class RngAlgorithm : std::uint8_t {
  kDefault,   ///< the plugin's choice
  kThreeFry,  ///< Threefry-2x32; a state of u64[2]
  kPhilox,    ///< Philox-4x32; a state of u64[2] or u64[3]
};

template <>
struct EnumNames<RngAlgorithm> {
  static constexpr EnumName<RngAlgorithm> kNames[] = {{RngAlgorithm::kDefault, "DEFAULT"},
                                                      {RngAlgorithm::kThreeFry, "THREE_FRY"},
                                                      {RngAlgorithm::kPhilox, "PHILOX"}};
};

/// The results of rng_bit_generator: random bits, and the state for the next call.
struct RandomBits {
  Tensor state, bits;
  MESHARD_FIELDS(state, bits)
};

/// Random bits from the compiler's own generator: `shape` of integers of `dtype`. Every device
/// computes all of them. The bits for a given state are the same from run to run on one plugin;
/// those of another plugin, and those of kDefault, may differ. meshard::random generates bits that
/// do not depend on any of these.
/// @error a state that is not u64[2] (u64[3] for kPhilox and kDefault); a dtype that is not an
/// integer.
RandomBits rng_bit_generator(In state, Shape shape, DType dtype = DType::u32,
                             RngAlgorithm algorithm = RngAlgorithm::kThreeFry);

}  // namespace meshard
