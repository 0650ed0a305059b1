#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value without its annotation: sharding() is empty, and it belongs to no devices, as if
/// nobody had placed it. Nothing moves: a program on the devices where its bytes are uses them as
/// they are laid out, a program on others gets a copy. `x` itself stays as it is.
///
/// A recorded value that was marked is the value before its mark: the compiler chooses again.
Tensor clear_sharding(In x);

}  // namespace meshard
