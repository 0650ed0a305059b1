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
Tensor silu(const Tensor& x);
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

}  // namespace meshard::nn
