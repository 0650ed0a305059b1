// A mesh as an array of device ids.
#pragma once
#include "meshard/array/host_array.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// The device id at each coordinate, as an i64 array of the mesh's shape. For a slice with several
/// rows, the rows are an additional first dimension. torch_xla's `Mesh.get_logical_mesh()`.
///
/// @code
/// get_logical_mesh(Mesh({{"x", 2}, {"y", 2}}, {7, 6, 5, 4}));  // [[7, 6], [5, 4]] i64[2,2]
/// @endcode
HostArray get_logical_mesh(const Mesh& mesh);

}  // namespace meshard
