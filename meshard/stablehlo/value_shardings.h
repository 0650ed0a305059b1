// Finds the values of a module in what a compiler made of it, and constrains their shardings.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// The module's text with a location of its own for each op that has results: compilers name the
/// instructions that they make of an op after it. Nothing else changes.
std::string with_numbered_ops(const Module& module);

/// The number of the op of with_numbered_ops() from which an instruction was made, in the order of
/// for_each_op(). A call that was written out puts the name of its own op first.
/// @return none: no such op has this name
std::optional<std::size_t> op_number(std::string_view instruction_name);

/// A view of a sharding for a value of a module.
struct ValueSharding {
  /// The number of a variable that an op makes.
  int variable = 0;
  /// `<@mesh, [{"x"}, {}]>`
  std::string_view sharding;
};

/// The module's text with an `sdy.sharding_constraint` after each of these values, with the op's
/// location. All that used the value uses the constraint.
/// @pre an op with a region makes each, which is a tensor
std::string with_constraints(const Module& module, std::span<const ValueSharding> values);

}  // namespace meshard::stablehlo
