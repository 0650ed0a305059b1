// Padding of uneven shards in host memory. Padding on devices: transfer_by_pieces.h between
// sets of devices, lowering/internal/boundary_padding.h at the boundary of a program.
#pragma once
#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"

namespace meshard {

/// The copy of the part `box` of `array` to the start of `block`, which may be larger. Elements
/// outside of the part are left as they are.
/// @pre the part is not empty, and `block` has the dtype of `array`
StridedCopy copy_into_padded(const HostArray& array, const Box& box, HostArray& block);

/// The array with zeros at the end of each dimension, up to the shape of `type`. The same array if
/// it has that shape already.
/// @pre no dimension of the array is larger
HostArray padded_on_host(const HostArray& array, const TensorType& type);

}  // namespace meshard
