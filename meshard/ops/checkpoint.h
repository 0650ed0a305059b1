#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body_function.h"
#include "meshard/graph/residual_policy.h"
#include "meshard/graph/structure.h"

namespace meshard {

/// Calls `body` so that its gradient keeps what the policy names and recomputes the rest. The
/// structured form is checkpoint().
std::vector<Tensor> checkpoint_tensors(const std::vector<Tensor>& arguments,
                                       const BodyFunction& body, const ResidualPolicy& policy,
                                       SourceLocation where = SourceLocation::current());

/// A value: what checkpoint() keeps for the backward pass in addition to the arguments.
class CheckpointPolicy {
 public:
  /// Keeps nothing: everything is recomputed.
  static CheckpointPolicy nothing() { return {{ResidualPolicy::Keep::kNothing}}; }
  /// Keeps the results of products (dot_general, convolution), the most expensive to recompute.
  static CheckpointPolicy dots() { return {{ResidualPolicy::Keep::kDots}}; }
  /// Keeps values to which checkpoint_name gave one of these names.
  static CheckpointPolicy named(std::vector<std::string> names) {
    return {{ResidualPolicy::Keep::kNamed, std::move(names)}};
  }
  /// Keeps everything that the backward pass uses, as without checkpoint().
  static CheckpointPolicy everything() { return {{ResidualPolicy::Keep::kEverything}}; }

  const ResidualPolicy& residuals() const { return residuals_; }

 private:
  CheckpointPolicy(ResidualPolicy residuals) : residuals_(std::move(residuals)) {}
  ResidualPolicy residuals_;
};

/// Wraps `f` so that its gradient recomputes intermediate values (rematerialization). The
/// derivative keeps the arguments, captured tensors and what `policy` names, and recomputes the
/// rest. Arguments and result are tensors or structures of them. In the body of scan() it reduces
/// the values that each step keeps. JAX calls this jax.checkpoint.
///
/// @code
/// Tensor w = ones({4, 4});
/// auto layer = checkpoint([&](Tensor h) { return tanh(matmul(h, w)); });
/// grad([&](Tensor h) { return sum(layer(h)); })(ones({2, 4}));
/// @endcode
template <class F>
auto checkpoint(F f, CheckpointPolicy policy = CheckpointPolicy::nothing(),
                SourceLocation where = SourceLocation::current()) {
  return [ f = std::move(f), policy = std::move(policy), where ]<class... Arguments>(
      const Arguments&... arguments) requires std::is_invocable_v<const F&, const Arguments&...> {
    using Result = std::remove_cvref_t<std::invoke_result_t<const F&, const Arguments&...>>;
    const std::tuple<Arguments...> all(arguments...);
    std::optional<Result> result;
    std::vector<Tensor> tensors = checkpoint_tensors(
        structure::tensors(all),
        [&](std::span<const Tensor> given) {
          result = std::apply(f, structure::with_tensors(all, given));
          return structure::tensors(*result);
        },
        policy.residuals(), where);
    return structure::with_tensors(std::move(*result), tensors);
  };
}

}  // namespace meshard
