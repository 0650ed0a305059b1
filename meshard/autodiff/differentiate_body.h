// The derivatives of bodies: what the vjps of loops and branches ask for.
#pragma once
#include "meshard/graph/body_vjp.h"

namespace meshard {

/// Differentiates a body with backward() and cuts the result in two: into nodes that do not need a
/// cotangent, and those that do. What stands on the border goes from one to the other as a
/// residual; which values those are the policy says (ResidualPolicy). Values that depend on
/// invariant parameters alone are computed on both sides instead.
const BodyDifferentiator& body_differentiator();

}  // namespace meshard
