#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The quotient a / b rounded down to a whole number; remainder(a, b) is the corresponding
/// remainder. Broadcasts and promotes; floats stay floats, bools are computed in i32. Its
/// derivative is zero.
///
/// The quotient of finite floats is computed as in Python, from a - fmod(a, b), which is exact. If
/// a or b is infinite, or a zero, it is the floor of a / b, as the array API standard says: inf / 2
/// is inf, and -1 / inf is -0. A float divided by zero gives what divide gives; the result for an
/// integer divided by zero depends on the plugin.
/// @error complex numbers.
Tensor floor_divide(In a, In b);

}  // namespace meshard
