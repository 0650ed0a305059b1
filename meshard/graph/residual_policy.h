// Which values the backward pass of a body keeps.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// A value: which values of the forward pass are kept for the backward pass. Values that are needed
/// but not kept are recomputed.
struct ResidualPolicy {
  enum class Keep : std::uint8_t {
    kNeeded,      ///< what costs the least to keep or to recompute (autodiff/cheapest_residuals.h)
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

}  // namespace meshard
