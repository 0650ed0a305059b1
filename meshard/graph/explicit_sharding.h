// Explicit shardings: what they are, and how they propagate from the operands of a call to its
// results.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"

namespace meshard {

/// The part of a sharding that uses explicit axes, which belongs to the value. Auto axes are left
/// out, since the compiler decides them: on a mesh that has some, dimensions are open, but only to
/// auto axes. Empty if the mesh has no explicit axis.
std::optional<Sharding> explicit_part(const Sharding& sharding);
/// The sharding that inference assumes for a value without one: replicated over the explicit axes
/// of `mesh`. @pre the mesh has explicit axes
Sharding whole_over_explicit_axes(const Mesh& mesh, std::size_t rank);

/// Annotations of a value with this sharding; null if it has no explicit part.
AnnotationsPtr annotations_of(const Sharding& sharding, std::size_t rank);

/// Reports that the operands do not determine the sharding of a call's results.
struct AmbiguousSharding : Error {
  explicit AmbiguousSharding(Error error) : Error(std::move(error)) {}
};

/// True if two values with these explicit shardings have the same elements on the same devices.
/// Axes of size 1 make no difference; nullptr counts as replicated (whole_over_explicit_axes).
bool same_explicit_sharding(const Sharding* a, const Sharding* b);

/// Infers annotations from the operands' explicit shardings by the op's sharding rule. Null if no
/// operand has one. Operands without one count as replicated. Operands that differ only in axes of
/// size 1 do not conflict.
/// @error invalid argument at the user's line if the rule is ambiguous, or the operands are on
/// different meshes; names the operands, their shardings and the lines that made them.
AnnotationsPtr infer_shardings(const Node& node);
/// The same with these operand shardings (nullptr: no explicit one).
/// @pre one for each operand, at least one of them not null
AnnotationsPtr infer_shardings(const Node& node, std::span<const Sharding* const> operands);

/// For OpDef::sharding_conflict: describes two operands with different explicit shardings; empty if
/// all are equal. For ops that place the elements of operands `first` and later side by side.
std::string unlike_operands(std::span<const Sharding* const> operands, std::size_t first = 0);

}  // namespace meshard
