// The derivatives of bodies, for the vjps of loops and branches.
#pragma once
#include "meshard/graph/body_vjp.h"

namespace meshard {

/// Differentiates a body with backward() and splits the result in two. One part contains the nodes
/// that do not need a cotangent, the other those that do. Values on the border are passed as
/// residuals; the policy (ResidualPolicy) chooses them. Values that depend only on invariant
/// parameters are computed in both parts instead.
const BodyDifferentiator& body_differentiator();

}  // namespace meshard
