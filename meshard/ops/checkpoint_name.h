#pragma once
#include <string>
#include <string_view>

#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"

namespace meshard {

struct CheckpointNameAttributes {
  std::string name;
  MESHARD_FIELDS(name)
};

/// `x` itself, under a name that the policies of checkpoint() know: `checkpoint_names({"name"})`
/// keeps it for the way back.
/// @error an empty name, or one with a comma or a quote.
Tensor checkpoint_name(In x, std::string_view name);

/// The name that a node gives its result; nullptr: none.
const std::string* checkpoint_name_of(const Node& node);

}  // namespace meshard
