// Tested in meshard/ops/remainder_test.cc.
#pragma once
#include "meshard/ops/emission.h"

namespace meshard {

/// The divisor, operand 1, of a remainder of integers: 1 in place of 0. A remainder by 1 is 0, what
/// NumPy and JAX give for 0, and StableHLO leaves to the backend. Of floats the divisor itself.
OpEmission::Typed nonzero_divisor(const OpCall& call, OpEmission& out);

}  // namespace meshard
