// Dimensions of a sharding that are left to the compiler.
#pragma once
#include <cstddef>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// True if the sharding leaves a dimension open to the compiler.
inline bool has_open_dimensions(const Sharding& sharding) {
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (sharding.is_open(d)) return true;
  return false;
}

}  // namespace meshard
