// The sharding that is part of a value, over a mesh with explicit axes: what it is, and how it goes
// from the operands of a call to its results.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"

namespace meshard {

/// What of a sharding is part of the value that has it: its explicit axes. Auto axes are left out,
/// and stay with the compiler: on a mesh that has some, dimensions are open to them alone. None if
/// the mesh has no explicit axis.
std::optional<Sharding> explicit_part(const Sharding& sharding);
/// The sharding as which a value without one takes part over the explicit axes of `mesh`: its
/// dimensions are whole along them. @pre the mesh has explicit axes
Sharding whole_over_explicit_axes(const Mesh& mesh, std::size_t rank);

/// Annotations of a value with this sharding; null if none of it is explicit.
AnnotationsPtr annotations_of(const Sharding& sharding, std::size_t rank);

/// The error of a call whose operands leave a choice of how its results are sharded.
struct AmbiguousSharding : Error {
  explicit AmbiguousSharding(Error error) : Error(std::move(error)) {}
};

/// The annotations that follow from the operands' explicit shardings by the op's sharding rule;
/// null if no operand has one. Operands without one take part as if they were replicated.
/// @error invalid argument at the user's line if the rule leaves a choice, or the operands are on
/// different meshes; naming the operands, their shardings and the lines that made them.
AnnotationsPtr infer_shardings(const Node& node);
/// The same, where the operands count as sharded so (nullptr: not explicitly).
/// @pre one for each operand, at least one of them not null
AnnotationsPtr infer_shardings(const Node& node, std::span<const Sharding* const> operands);

/// For OpDef::sharding_conflict: the operands from `first` on that have an explicit sharding must
/// have the same, because the op puts elements of one beside those of another.
std::string unlike_operands(std::span<const Sharding* const> operands, std::size_t first = 0);

}  // namespace meshard
