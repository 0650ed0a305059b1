// The table of all primitives.
#pragma once
#include <span>
#include <string_view>

#include "meshard/graph/op_def.h"

namespace meshard {

/// All primitives, in alphabetical order.
std::span<const OpDef* const> all_ops();

/// Finds the primitive with this name; nullptr if there is none.
const OpDef* find_op(std::string_view name);

}  // namespace meshard
