#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value without its annotation. sharding() is empty, and the value is unplaced, as if it
/// had never been placed. No data moves: a program on the devices that hold its bytes uses them in
/// their stored sharding; a program on other devices gets a copy. `x` itself is unchanged.
///
/// For a recorded value that was marked, the result is the value before the mark: the compiler
/// chooses its sharding again.
Tensor clear_sharding(In x);

}  // namespace meshard
