// Tensors without a value, for explaining programs on hardware that is not available.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Makes a tensor that has a type and possibly a sharding, but no bytes. Pass it to explain() for
/// hardware that is not available, or for tensors too large for this host. Functions may be traced
/// with it, and mark_sharding gives it another sharding.
///
/// ```
/// Tensor w = abstract_tensor({4096, 14336}, DType::bf16, pod, P("data", "model"));
/// ```
/// @error reading its value: failed precondition, with the line that made it. A spec with more
/// dimensions than the tensor has, or with an axis that the mesh lacks.
Tensor abstract_tensor(Shape shape, DType dtype, SourceLocation where = SourceLocation::current());
Tensor abstract_tensor(Shape shape, DType dtype, const Mesh& mesh, const PartitionSpec& spec,
                       SourceLocation where = SourceLocation::current());
/// The same, with an optional sharding.
Tensor abstract_tensor(TensorType type, std::optional<Sharding> sharding,
                       SourceLocation where = SourceLocation::current());

/// True if abstract_tensor() made the tensor.
bool is_abstract(const Tensor& tensor);

}  // namespace meshard
