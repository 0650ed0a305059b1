// A mixture of experts: perceptrons of which each token uses a few.
#pragma once
#include <cstdint>

#include "meshard/nn/mlp.h"

namespace meshard::nn {

/// router [width, experts], up [experts, width, hidden], down [experts, hidden, width]
struct Mixture {
  Tensor router, up, down;
  MESHARD_FIELDS(router, up, down)
};

/// Dimensions "embed", "expert", "hidden". With a rule for "expert" each device holds some of the
/// experts.
Mixture make_mixture(Maker& make, std::int64_t width, std::int64_t hidden, std::int64_t experts,
                     const Initializer& weight = init::lecun_normal());

struct MixtureOptions {
  /// How many experts each token uses.
  std::int64_t used = 2;
  /// An expert takes at most capacity * time * used / experts tokens of a row, rounded up; further
  /// ones pass it by.
  double capacity = 1.25;
  Activation activation = activation::gelu;
  /// Marks what the experts get and give, so that tokens travel to the experts' devices.
  AxisRules rules = {};
};

/// What a mixture gives: the sum of the used experts' answers, weighted by the router's
/// probabilities, which are scaled to sum to 1 over the used ones if there are several (GShard),
/// and stay as they are for one (Switch); and a loss to add, 1 if all experts are used alike and
/// larger if not (Fedus, Zoph and Shazeer: Switch Transformers, 2022, equations 2 and 4).
struct MixtureResult {
  Tensor value, balance_loss;
  MESHARD_FIELDS(value, balance_loss)
};

/// x [batch, time, width] to the same shape. Each row of the batch is a group: its tokens take the
/// places of an expert in order of time, all first choices before the second ones. Tokens are sent
/// and collected by products with [batch, time, experts, places] (Lepikhin et al.: GShard, 2021).
/// @error invalid argument unless 1 <= used <= experts.
MixtureResult mixture(const Mixture& params, const Tensor& x, const MixtureOptions& options = {});

}  // namespace meshard::nn
