// The derivatives of bodies, for the vjps of loops and branches.
#pragma once
#include <cstddef>

#include "meshard/graph/body.h"
#include "meshard/graph/body_vjp.h"

namespace meshard {

// Divides a program into two that run one after the other.

/// A body in two parts.
struct SplitBody {
  /// Computes the first results of the body, then the values that `second` needs.
  Body first;
  /// Computes the other results. Its parameters are the parameters of the body, then what `first`
  /// hands over.
  Body second;
};

/// Divides a body so that its first `count` results can be computed before the others.
///
/// No product, reduction or other expensive operation is in both parts. What the first part hands
/// over is the cheapest set of values (cheapest_residuals()): cheap operations on parameters and on
/// these values are computed in both parts instead.
/// @pre count is at most body.num_results()
/// @post first has at least `count` results; both together have all results of the body
SplitBody split_body(const Body& body, std::size_t count, SourceLocation where);

/// Differentiates a body with backward() and splits the result in two. One part contains the nodes
/// that do not need a cotangent, the other those that do. Values on the border are passed as
/// residuals; the policy (ResidualPolicy) chooses them. Values that depend only on invariant
/// parameters are computed in both parts instead.
const BodyDifferentiator& body_differentiator();

}  // namespace meshard
