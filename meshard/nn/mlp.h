// Two-layer MLPs: the feed-forward part of a transformer.
#pragma once
#include <cstdint>
#include <functional>

#include "meshard/nn/linear.h"

namespace meshard::nn {

/// An element-wise function.
using Activation = std::function<Tensor(const Tensor&)>;
namespace activation {
Tensor gelu(const Tensor& x);  ///< the tanh approximation
/// x * logistic(x).
Tensor silu(const Tensor& x);
/// max(x, 0).
Tensor relu(const Tensor& x);
}  // namespace activation

/// The parameters of an MLP: down(activation(up(x))).
struct Mlp {
  Linear up, down;
  MESHARD_FIELDS(up, down)
};
struct MlpOptions {
  bool bias = true;
  Initializer up = init::lecun_normal(), down = init::lecun_normal();
};
/// Creates an MLP. The dimension names are "embed" and "hidden". With a rule for "hidden" the first
/// weight is split by columns and the second by rows, so that one all-reduce combines the parts.
Mlp make_mlp(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options = {},
             SourceLocation where = SourceLocation::current());
Tensor mlp(const Mlp& params, const Tensor& x, const Activation& activation = activation::gelu,
           SourceLocation where = SourceLocation::current());

/// The parameters of a gated MLP: down(activation(gate(x)) * up(x)) (Shazeer: GLU Variants Improve
/// Transformer, 2020).
struct GatedMlp {
  Linear gate, up, down;
  MESHARD_FIELDS(gate, up, down)
};
/// Creates a gated MLP. Dimension names as for make_mlp; by default without biases.
GatedMlp make_gated_mlp(Maker& make, std::int64_t width, std::int64_t hidden,
                        const MlpOptions& options = {.bias = false},
                        SourceLocation where = SourceLocation::current());
Tensor gated_mlp(const GatedMlp& params, const Tensor& x,
                 const Activation& activation = activation::silu,
                 SourceLocation where = SourceLocation::current());

// A mixture of experts: MLPs of which each token uses a few.

/// The parameters: router [width, experts], up [experts, width, hidden], down [experts, hidden,
/// width].
struct Mixture {
  Tensor router, up, down;
  MESHARD_FIELDS(router, up, down)
};

/// Creates a mixture. The dimension names are "embed", "expert", "hidden". With a rule for "expert"
/// each device holds some of the experts.
Mixture make_mixture(Maker& make, std::int64_t width, std::int64_t hidden, std::int64_t experts,
                     const Initializer& weight = init::lecun_normal(),
                     SourceLocation where = SourceLocation::current());

/// Options of mixture().
struct MixtureOptions {
  /// The number of experts that each token uses. Default: 2.
  std::int64_t used = 2;
  /// Limits an expert to capacity * time * used / experts tokens of a row, rounded up; further
  /// tokens skip it. Default: 1.25.
  double capacity = 1.25;
  Activation activation = activation::gelu;
  /// Marks the inputs and outputs of the experts, so that tokens move to the experts' devices.
  /// Default: no marks.
  AxisRules rules = {};
};

/// The result of a mixture, and a loss that balances the experts. The value is the sum of the used
/// experts' outputs, weighted by the router's probabilities. These are normalized to sum to 1 if
/// several experts are used (GShard), and unchanged for one (Switch). The loss, to be added, is 1
/// if all experts are used equally and larger if not (Fedus, Zoph and Shazeer: Switch Transformers,
/// 2022, equations 2 and 4).
struct MixtureResult {
  Tensor value, balance_loss;
  MESHARD_FIELDS(value, balance_loss)
};

/// Applies a mixture of experts to x [batch, time, width], giving the same shape. Each row of the
/// batch is a group: its tokens take an expert's places in time order, all first choices before the
/// second ones. Tokens are dispatched and combined by products with [batch, time, experts, places]
/// (Lepikhin et al.: GShard, 2021).
/// @error invalid argument unless 1 <= used <= experts.
MixtureResult mixture(const Mixture& params, const Tensor& x, const MixtureOptions& options = {},
                      SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
