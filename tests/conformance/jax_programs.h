// What the cases of tests/golden/jax/numerics.json compute, in meshard.
#pragma once
#include <optional>

#include "tests/conformance/conformance.h"
#include "tests/conformance/jax_cases.h"

namespace meshard::conformance {

/// The program of a case; empty if it needs an op that meshard does not have. `test` must outlive
/// it.
std::optional<Body> jax_program(const Json& test);

}  // namespace meshard::conformance
