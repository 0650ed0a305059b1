// The function of a body, as users' templates pass it to ops with control flow.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The function of a body: maps its parameters to its results.
using BodyFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

}  // namespace meshard
