// Parses a program from its text.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/graph/graph.h"

namespace meshard {

struct OpDef;

/// Finds a primitive by name; nullptr if there is none. ops/definition/op_table.h has one for all
/// ops.
using FindOp = const OpDef* (*)(std::string_view name);

/// Parses the program that to_string() printed. Captured values become additional parameters,
/// because their bytes are not in the text; source lines are lost.
/// @post to_string() of the result is the input text, with captured values listed as parameters
/// @error invalid argument with the line number: a syntax error, an unknown op, or a type that
/// differs from the inferred one.
Result<Graph> parse_graph(std::string_view text, FindOp find_op);

}  // namespace meshard
