// Tested in meshard/ops/remainder_test.cc.
#pragma once
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

/// Operand 1, the divisor of a remainder, with 0 replaced by 1 for integers. A remainder by 1 is 0,
/// which NumPy and JAX return for a divisor of 0; StableHLO leaves the result to the backend. A
/// float divisor is unchanged.
OpEmission::Typed nonzero_divisor(const OpCall& call, OpEmission& out);

}  // namespace meshard::internal
