// Unreduced values at the boundary of a program: each device returns a summand.
#pragma once
#include "meshard/graph/node.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// The same sharding, summed: without unreduced axes.
Sharding summed(const Sharding& sharding);
/// True if devices hold different summands: an unreduced axis has more than one device. What is
/// unreduced by a maximum or a minimum is held whole by each device, since it is the maximum and
/// the minimum of its copies.
bool has_summands(const Sharding& sharding);

/// The operand of a mark of unreduced axes if the compiler leaves it unsummed by itself: the result
/// of a matrix product, or of a sum, of which exactly these axes split the contracted dimensions.
/// nullptr for any other value. The shardings of its operands are certain: they come from
/// parameters or marks.
const Value* unsummed_operand(const Node& mark);

/// Writes the summands of `value` along the unreduced axes of `sharding`: the value itself on the
/// first device along them, and zeros on the others. The compiler takes a whole value that is
/// marked as unreduced for the summand of each device, which would multiply it. At the boundary of
/// the program (ProgramMeshes::border_text).
stablehlo::Value write_summands(stablehlo::ModuleWriter& writer, stablehlo::Value value,
                                const TensorType& type, const Sharding& sharding,
                                const ProgramMeshes& meshes);

}  // namespace meshard
