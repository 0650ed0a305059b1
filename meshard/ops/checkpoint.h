#pragma once
#include <string>
#include <vector>

#include "meshard/graph/body_vjp.h"
#include "meshard/ops/bodies.h"

namespace meshard {

struct CheckpointAttributes {
  /// One: from the arguments and captured values to the results.
  std::vector<Body> bodies;
  /// A ResidualPolicy as text.
  std::string policy;
  std::string extends;
  MESHARD_FIELDS(bodies, policy, extends)
};

/// What `body` gives for the arguments. Its derivative keeps what the policy says and computes the
/// rest again. The structured form is checkpoint() of autodiff/checkpoint.h.
std::vector<Tensor> checkpoint_tensors(const std::vector<Tensor>& arguments,
                                       const BodyFunction& body, const ResidualPolicy& policy,
                                       SourceLocation where = SourceLocation::current());

}  // namespace meshard
