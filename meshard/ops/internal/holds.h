#pragma once
#include <algorithm>
#include <cstdint>

#include "meshard/array/shape.h"

namespace meshard::internal {

/// True if a dimension is in the list.
inline bool holds(const Dimensions& list, std::int64_t dimension) {
  return std::find(list.begin(), list.end(), dimension) != list.end();
}

}  // namespace meshard::internal
