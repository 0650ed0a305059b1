#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value without its annotation: sharding() is empty. Nothing moves, and a program that
/// uses it still sees how its bytes lie. `x` itself stays as it is.
///
/// A recorded value that was marked is the value before its mark: the compiler chooses again.
Tensor clear_sharding(In x);

}  // namespace meshard
