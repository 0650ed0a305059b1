// The interface through which vjps of ops with control flow differentiate a body. The derivative is
// split into a part for the forward pass and a part for the backward pass.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/residual_policy.h"

namespace meshard {

/// How a parameter of a body is available in the backward pass.
enum class InBackward : std::uint8_t {
  kUnavailable,  ///< must be kept like other values: a carry
  kAvailable,    ///< available again, such as a slice of a scanned array
  kInvariant,    ///< available, and the same in each iteration: a captured value
};

/// The derivative of a body.
struct BodyVjp {
  /// The body with additional results: the values that the backward pass needs.
  Body forward;
  /// Maps cotangents and residuals to the cotangents of the wanted parameters. Its parameters are
  /// the cotangents of the results that have one, in order, then one value for each entry of
  /// `residuals`, then `captured`.
  Body backward;
  struct Residual {
    /// True: result number `index` of `forward`. False: parameter number `index` of the body.
    bool saved = false;
    std::size_t index = 0;
  };
  std::vector<Residual> residuals;
  /// Outer values that `backward` needs.
  std::vector<Tensor> captured;
};

/// The interface of autodiff to ops.
class BodyDifferentiator {
 public:
  virtual ~BodyDifferentiator() = default;
  /// @pre `has_cotangent` has an entry for each result; `wanted` (only floating-point or complex
  /// parameters) and `back` have one for each parameter.
  /// @error any error of differentiating the body.
  virtual BodyVjp differentiate(const Body& body, const std::vector<bool>& has_cotangent,
                                const std::vector<bool>& wanted, std::span<const InBackward> back,
                                const ResidualPolicy& policy, SourceLocation where) const = 0;
};

}  // namespace meshard
