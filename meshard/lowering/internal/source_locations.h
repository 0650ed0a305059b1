// Locations of source lines in a module's text, instead of the numbers of a graph's nodes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/graph/graph.h"

namespace meshard {

/// Replaces the locations `n<n>` that lower() writes for ops: an op whose line is known gets
/// `"add"("step.cc":42:1)`, the others only their name. In a program that takes derivatives, the
/// phase is before the name, as JAX writes it: `jvp()/add` in the forward pass,
/// `transpose(jvp())/add` in the backward pass, and `optimizer()/add`. A number of an argument
/// becomes `unknown`. Locations of other forms stay.
std::string with_source_locations(std::string_view text, const Graph& graph);

}  // namespace meshard
