// The interface through which vjps of ops with control flow differentiate a body. The derivative is
// split into a part for the forward pass and a part for the backward pass.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/body.h"

namespace meshard {

/// A value: which values of the forward pass are kept for the backward pass. Values that are needed
/// but not kept are recomputed.
struct ResidualPolicy {
  enum class Keep : std::uint8_t {
    kNeeded,      ///< what the backward pass uses, except what is cheap to recompute
    kEverything,  ///< everything that the backward pass uses
    kNothing,     ///< only the arguments
    kDots,        ///< results of products (dot_general, convolution)
    kNamed,       ///< values to which checkpoint_name gave one of `names`
  };
  Keep keep = Keep::kNeeded;
  std::vector<std::string> names = {};

  /// `needed`, `everything`, `nothing`, `dots`, `names:a,b`.
  std::string to_string() const;
  /// @error invalid argument: any other text.
  static Result<ResidualPolicy> parse(std::string_view text);
  friend bool operator==(const ResidualPolicy&, const ResidualPolicy&) = default;
};

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
