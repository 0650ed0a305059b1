// Dtypes of arrays and element types of plugins and compiled modules.
#pragma once
#include "meshard/array/dtype.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/element_type.h"

namespace meshard {

/// PJRT's element type for a dtype, and back: both have the same name in StableHLO.
pjrt::ElementType element_type_of(DType dtype);
/// @error unimplemented for element types without a meshard dtype (2-bit and 4-bit types).
Result<DType> dtype_of_element(pjrt::ElementType element);

}  // namespace meshard
