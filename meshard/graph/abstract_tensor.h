// Tensors without a value: for explaining programs on hardware that is not here.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A tensor that has a type, and a sharding if one is given, and no bytes: an argument of explain()
/// for hardware that is not here, or too large for this host. Functions may be traced with it and
/// mark_sharding gives it another sharding.
///
/// ```
/// Tensor w = abstract_tensor({4096, 14336}, DType::bf16, pod, P("data", "model"));
/// ```
/// @error its value is asked for: failed precondition, with the line that made it. The spec names
/// more dimensions than there are, or an axis that the mesh lacks.
Tensor abstract_tensor(Shape shape, DType dtype, SourceLocation where = SourceLocation::current());
Tensor abstract_tensor(Shape shape, DType dtype, const Mesh& mesh, const PartitionSpec& spec,
                       SourceLocation where = SourceLocation::current());
/// With a sharding or none.
Tensor abstract_tensor(TensorType type, std::optional<Sharding> sharding,
                       SourceLocation where = SourceLocation::current());

/// True for what abstract_tensor gave.
bool is_abstract(const Tensor& tensor);

}  // namespace meshard
