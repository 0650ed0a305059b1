// Ops that are written as several others.
#pragma once
#include "meshard/graph/body_function.h"
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

/// Writes a call whose results `function` computes from its operands with other ops. The function
/// is called now, so that it may depend on the quirks of the compiler.
/// @pre it captures no tensors, and its results have the types of the call's
void emit_composition(const OpCall& call, OpEmission& out, const BodyFunction& function);

}  // namespace meshard::internal
