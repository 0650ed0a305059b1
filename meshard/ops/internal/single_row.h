// Products and scatters of a single row, written for XLA's CPU compiler.
//
// XLA removes dimensions of size 1, and what remains meets three weaknesses of its CPU compiler
// (measured with PJRT API 0.75 and 0.112, x86):
// - The product of a vector of less than 16 KiB and an array of more than two dimensions is fused
//   with the reshape of the array, and then computed element by element: f32[1024] times
//   f32[1024,32,32] takes 2.4 ms. With two equal rows, it takes 0.11 ms. (For an array of two
//   dimensions there is nothing to fuse, and a single row is fastest.)
// - A batch dimension of size 1 becomes a reshape between the operand and its transposition, which
//   is then not a part of the product, but a copy of the operand.
// - The scatter of a single window becomes a dynamic_update_slice, which is fused with each of its
//   users, and each of these copies the operand.
#pragma once
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

/// Writes a dot_general that has one of the first two problems, without its batch dimensions of
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
