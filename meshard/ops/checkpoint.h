#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body_vjp.h"
#include "meshard/graph/structure.h"
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
/// rest again. The structured form is checkpoint().
std::vector<Tensor> checkpoint_tensors(const std::vector<Tensor>& arguments,
                                       const BodyFunction& body, const ResidualPolicy& policy,
                                       SourceLocation where = SourceLocation::current());

/// A value: what checkpoint() keeps for the way back besides the arguments.
class CheckpointPolicy {
 public:
  /// Nothing: all of it is computed again.
  static CheckpointPolicy nothing() { return {{ResidualPolicy::Keep::kNothing}}; }
  /// The results of products (dot_general, convolution), which cost the most to compute again.
  static CheckpointPolicy dots() { return {{ResidualPolicy::Keep::kDots}}; }
  /// What checkpoint_name gave one of these names.
  static CheckpointPolicy named(std::vector<std::string> names) {
    return {{ResidualPolicy::Keep::kNamed, std::move(names)}};
  }
  /// All that the way back uses, as without checkpoint().
  static CheckpointPolicy everything() { return {{ResidualPolicy::Keep::kEverything}}; }

  const ResidualPolicy& residuals() const { return residuals_; }

 private:
  CheckpointPolicy(ResidualPolicy residuals) : residuals_(std::move(residuals)) {}
  ResidualPolicy residuals_;
};

/// A function of the same values as `f`, whose derivative keeps the arguments, captured tensors and
/// what `policy` says, and computes the rest again. Arguments and result are tensors or structures
/// of them. In the body of scan() it makes what every step keeps less. JAX calls this
/// jax.checkpoint.
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
