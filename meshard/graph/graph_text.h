// Prints a program as text, for people and for tests, and parses such text.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/graph/graph.h"

namespace meshard {

// Prints a program as text, for people and for tests; parse_graph() in parse.h parses it.

struct PrintOptions {  ///< What to_string() prints.
  /// Adds `  // train.cc:42` to each line.
  bool source_lines = false;
};

/// The program as text: ```text
/// graph(%0: f32[8,4], %1: f32[4]) captured(%2: f32[]) {
///   %3 = reduce_sum(%0) {dimensions=[1]} : f32[8]
///   return %3
/// }
/// ```
///
/// Annotations are printed after a result's type: `f32[4] manual{"x"} varying{"x"}`. The bodies of
/// a node with control flow are printed inside its attributes.
std::string to_string(const Graph& graph, PrintOptions options = {});

// Parses a program from its text.

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
