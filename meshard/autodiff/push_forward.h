// Forward-mode differentiation of recorded values.
#pragma once
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A value: the derivative of `outputs` at recorded `inputs`, as a linear function from tangents of
/// the inputs to tangents of the outputs.
///
/// It is the transpose of the transpose: the pullback is linear in its cotangents, so that its own
/// vjp, with respect to them, is the derivative itself. No op needs a rule for it (Radul, Paszke,
/// Frostig, Johnson, Maclaurin: You Only Linearize Once, POPL 2023, goes the same way in the other
/// direction). Recording costs two backward passes; of the first one only what the second leads
/// through becomes part of a program.
class PushForward {
 public:
  /// Records the pullback for cotangents that are not known yet. Call it inside a
  /// KeepOperandsScope.
  /// @pre inputs are floating-point; a floating-point output that has manual axes varies over them
  /// @error unimplemented if a path passes an op without a derivative.
  PushForward(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
              SourceLocation where);

  /// The tangents of the outputs, each of its output's type; zeros for outputs that are not
  /// floating-point. An undefined tangent is zero. May be called again.
  /// @error invalid argument unless there is one tangent of its type for each input.
  std::vector<Tensor> operator()(std::span<const Tensor> tangents, SourceLocation where) const;

 private:
  std::vector<TensorType> types_;  // of the inputs
  std::vector<Tensor> outputs_;    // their shapes and kinds are what counts
  std::vector<Tensor> seeds_;      // cotangents of the floating-point outputs, in order
  std::vector<Tensor> pulled_;     // what these give for the inputs
};

}  // namespace meshard
