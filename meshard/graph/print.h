// Prints a program as text, for people and for tests; parse_graph() in parse.h parses it.
#pragma once
#include <string>

#include "meshard/graph/graph.h"

namespace meshard {

struct PrintOptions {
  /// Adds `  // train.cc:42` to each line.
  bool source_lines = false;
};

/// ```text
/// graph(%0: f32[8,4], %1: f32[4]) captured(%2: f32[]) {
///   %3 = reduce_sum(%0) {dimensions=[1]} : f32[8]
///   return %3
/// }
/// ```
///
/// Annotations are printed after a result's type: `f32[4] manual{"x"} varying{"x"}`. The bodies of
/// a node with control flow are printed inside its attributes.
std::string to_string(const Graph& graph, PrintOptions options = {});

}  // namespace meshard
