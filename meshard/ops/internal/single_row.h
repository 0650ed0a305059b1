// Products and scatters of a single row, written for XLA's CPU compiler
// (Quirk::kSingleRowProducts, Quirk::kSingleWindows).
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

/// Writes a dot_general that would be slow, without its batch dimensions of
/// size 1, and with two equal rows if it has a small vector.
/// @return whether it was written; otherwise nothing was
bool emit_single_row_product(const OpCall& call, OpEmission& out);

/// Whether a scatter writes a single window.
/// @pre the op is a scatter
bool has_single_window(const OpCall& call);

/// Writes a scatter of a single window that replaces elements by `emit`, with the window twice.
/// @pre has_single_window(call)
void emit_window_twice(const OpCall& call, OpEmission& out,
                       void (*emit)(const OpCall& call, OpEmission& out));

}  // namespace meshard::internal
