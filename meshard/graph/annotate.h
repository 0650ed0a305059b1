// How annotations propagate from the operands of a call to its results.
#pragma once
#include "meshard/graph/annotation.h"

namespace meshard {

/// Computes the annotations of the results of a newly recorded node; null if there are none. Called
/// if an operand is annotated or the op defines the annotations itself (OpDef::annotate).
///
/// All operands inside manual axes must be inside the same ones; the results vary over every axis
/// that an operand varies over. Other values may be combined with them only if may_enter() allows
/// it. Explicit shardings: infer_shardings.
/// @error invalid argument at the user's line, naming both operands and the lines that made them.
AnnotationsPtr annotate_results(const Node& node);

/// The default rule; ops with their own rule may start with it.
AnnotationsPtr annotate_by_operands(const Node& node);

/// True if a full value is the same wherever it is computed (a free value): a leaf or computed
/// value of rank 0, a constant, or a value computed only from these.
bool is_free(const Value& value);

/// True if a value may be used in the region of `place` without being an argument of it: a value of
/// that place, a free value, or a value of an enclosing region of rank 0 or broadcast from rank 0.
bool may_enter(const Value& value, const ManualAxes& place);

/// The annotations of a local value.
AnnotationsPtr annotations_of(ManualAxes manual);

}  // namespace meshard
