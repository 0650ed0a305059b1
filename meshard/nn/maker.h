// Makes the parameters of a model, each on the devices where it belongs.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "meshard/nn/axis_rules.h"
#include "meshard/nn/initializer.h"
#include "meshard/ops/composite/random.h"

namespace meshard::nn {

/// What a model's `make_` functions ask for parameters. A function that takes a Maker says what
/// parameters there are, once; create() then gives them values, and describe() only their types
/// and shardings, for checkpoints and for explain() on hardware that is not here.
class Maker {
 public:
  /// Gives values. Parameter i takes the i-th key of `key`.
  Maker(AxisRules rules, Tensor key, DType dtype = kDefaultFloat);
  /// Gives abstract tensors.
  explicit Maker(AxisRules rules, DType dtype = kDefaultFloat);

  /// A parameter of this shape; `names` are those of its dimensions. It is computed on the devices
  /// of the mesh, each making its own part; nothing is sent from the host.
  Tensor operator()(const Shape& shape, const PartitionSpec& names, const Initializer& initializer,
                    const Fans& fans = {});

  const AxisRules& rules() const { return rules_; }

 private:
  AxisRules rules_;
  std::optional<Tensor> key_;
  DType dtype_;
  std::uint32_t made_ = 0;
};

/// The parameters that `make(maker)` asks for, with values from this seed: the same ones on any
/// mesh.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// nn::AxisRules rules(mesh, {{"hidden", "model"}});
/// nn::Mlp mlp = nn::create(rules, 1, [](nn::Maker& make) { return nn::make_mlp(make, 64, 256); });
/// mlp.up.weight.sharding()->spec();  // P(none, "model")
/// @endcode
template <class F>
auto create(const AxisRules& rules, std::int64_t seed, const F& make, DType dtype = kDefaultFloat) {
  Maker maker(rules, random::key(seed), dtype);
  return make(maker);
}

/// The same structure of abstract tensors.
template <class F>
auto describe(const AxisRules& rules, const F& make, DType dtype = kDefaultFloat) {
  Maker maker(rules, dtype);
  return make(maker);
}

}  // namespace meshard::nn
