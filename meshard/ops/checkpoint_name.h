#pragma once
#include <string>
#include <string_view>

#include "meshard/graph/tensor.h"

namespace meshard {

struct CheckpointNameAttributes {
  std::string name;
  MESHARD_FIELDS(name)
};

/// `x` itself, with a name to which the policies of checkpoint() can refer:
/// `CheckpointPolicy::named({"name"})` keeps it for the backward pass.
/// @error an empty name, or one that contains a comma or a quote.
Tensor checkpoint_name(In x, std::string_view name);

/// The name that checkpoint_name gave to the node's result; nullptr if none.
const std::string* checkpoint_name_of(const Node& node);

}  // namespace meshard
