// What the vjp of an op with control flow asks of autodiff: the derivative of a body, cut into what
// runs on the way forward and what runs on the way back.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/body.h"

namespace meshard {

/// A value: which values of the way forward are kept for the way back. What is not kept and is
/// needed is computed again.
struct ResidualPolicy {
  enum class Keep : std::uint8_t {
    kNeeded,      ///< what the way back uses, but for what costs nothing to make again
    kEverything,  ///< all that the way back uses
    kNothing,     ///< the arguments only
    kDots,        ///< results of products (dot_general, convolution)
    kNamed,       ///< what checkpoint_name gave one of `names`
  };
  Keep keep = Keep::kNeeded;
  std::vector<std::string> names = {};

  /// `needed`, `everything`, `nothing`, `dots`, `names:a,b`.
  std::string to_string() const;
  /// @error invalid argument: another word.
  static Result<ResidualPolicy> parse(std::string_view text);
  friend bool operator==(const ResidualPolicy&, const ResidualPolicy&) = default;
};

/// How a parameter of a body is at hand on the way back.
enum class OnTheWayBack : std::uint8_t {
  kGone,       ///< it must be kept as other values are: a carry
  kThere,      ///< it is there again: a slice of an array that is scanned
  kInvariant,  ///< it is there, and the same each time: a captured value
};

/// A body's derivative.
struct BodyVjp {
  /// The body with further results: what the way back needs.
  Body forward;
  /// From the cotangents of the results that have one, in order, then one value for each entry of
  /// `residuals`, then `captured`, to the cotangents of the wanted parameters.
  Body backward;
  struct Residual {
    /// True: result number `index` of `forward`. False: parameter number `index` of the body.
    bool saved = false;
    std::size_t index = 0;
  };
  std::vector<Residual> residuals;
  /// Values from outside that `backward` needs.
  std::vector<Tensor> captured;
};

/// The face of autodiff to ops.
class BodyDifferentiator {
 public:
  virtual ~BodyDifferentiator() = default;
  /// @pre `has_cotangent`: one for each result; `wanted` (floating-point ones only) and `back`: one
  /// for each parameter. `place` is that of the body's parameters.
  /// @error what differentiating the body meets.
  virtual BodyVjp differentiate(const Body& body, const std::vector<bool>& has_cotangent,
                                const std::vector<bool>& wanted, std::span<const OnTheWayBack> back,
                                const ResidualPolicy& policy, SourceLocation where) const = 0;
};

}  // namespace meshard
