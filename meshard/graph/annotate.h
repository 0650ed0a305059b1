// How annotations go from the operands of a call to its results.
#pragma once
#include "meshard/graph/annotation.h"

namespace meshard {

/// The annotations of the results of a node that was just recorded, of which an operand is
/// annotated or whose op says them itself (OpDef::annotate). Null: none.
///
/// Operands inside manual axes must be inside the same ones; the results vary over every axis that
/// an operand varies over. Other values may not meet them, unless they may enter (may_enter).
/// Explicit shardings: infer_shardings.
/// @error invalid argument at the user's line, naming both operands and the lines that made them.
AnnotationsPtr annotate_results(const Node& node);

/// The common rule, for ops whose own rule begins with it.
AnnotationsPtr annotate_by_operands(const Node& node);

/// True if a full value is the same wherever it is computed: a tensor of rank 0 that was not
/// recorded, a constant, and what is made of these alone.
bool is_free(const Value& value);

/// True if a value may be used in the region of `place` without going in as an argument: one of
/// that place, a free one, and one of rank 0 of a region around it, broadcast or not.
bool may_enter(const Value& value, const ManualAxes& place);

/// Annotations of a local value.
AnnotationsPtr annotations_of(ManualAxes manual);

}  // namespace meshard
