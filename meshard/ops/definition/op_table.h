// The table of all primitives.
#pragma once
#include <span>
#include <string_view>

#include "meshard/graph/op_def.h"

namespace meshard {

// The definition of each primitive: exp_op, slice_op. Code that reads the attributes of one op
// compares with its constant; code for several ops reads their traits (OpTraits).
#define MESHARD_OP(name) extern const OpDef name##_op;
#include "meshard/ops/op_list.inc"
#undef MESHARD_OP

/// All primitives, in alphabetical order.
std::span<const OpDef* const> all_ops();

/// Finds the primitive with this name; nullptr if there is none.
const OpDef* find_op(std::string_view name);

}  // namespace meshard
