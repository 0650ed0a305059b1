// Padding of uneven arguments and results at the boundary of a program. On the host, uneven shards
// are padded by runtime/internal/host_to_device.h.
#pragma once
#include "meshard/array/shape.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The type of an argument or result in the program: each dimension that the sharding splits
/// unevenly is as large as all its shards. The compiler would silently drop such a sharding.
/// NodeWriter::cut and NodeWriter::pad convert between this and the value's own type.
/// @pre sharding.rank() == type.rank()
TensorType padded_type(const TensorType& type, const Sharding& sharding);

}  // namespace meshard
