// Forward-mode differentiation of recorded values.
#pragma once
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A value: the derivative of `outputs` at recorded `inputs`. It is a linear function from tangents
/// of the inputs to tangents of the outputs.
///
/// Computed as the transpose of the transpose: the pullback is linear in its cotangents, so its own
/// vjp with respect to them is the derivative itself. No op needs a forward rule (Radul, Paszke,
/// Frostig, Johnson, Maclaurin: You Only Linearize Once, POPL 2023, does the same in the other
/// direction). Recording takes two backward passes; of the first, only the nodes that the second
/// passes through become part of a program.
class PushForward {
 public:
  /// Records the pullback for placeholder cotangents. Call it inside a KeepOperandsScope.
  /// @pre inputs are floating-point or complex; a floating-point output that has manual axes varies
  /// over them
  /// @error unimplemented if a path passes an op without a derivative.
  PushForward(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
              SourceLocation where);

  /// The tangents of the outputs, each of its output's type; zeros for outputs that are neither
  /// floating-point nor complex. An undefined tangent is zero. May be called again.
  /// @error invalid argument unless there is one tangent for each input, of the input's type.
  std::vector<Tensor> operator()(std::span<const Tensor> tangents, SourceLocation where) const;

 private:
  std::vector<TensorType> types_;  // of the inputs
  std::vector<Tensor> outputs_;    // only their types are used
  std::vector<Tensor> seeds_;      // cotangents of the floating-point outputs, in order
  std::vector<Tensor> pulled_;     // the cotangents of the inputs, given these
};

}  // namespace meshard
