// Creates the parameters of a model directly on their devices.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "meshard/nn/axis_rules.h"
#include "meshard/nn/initializer.h"
#include "meshard/ops/composite/random.h"

namespace meshard::nn {

/// Creates the parameters that a model's `make_` functions request. A function that takes a Maker
/// defines the parameters once; create() then gives them values, and describe() only their types
/// and shardings, for checkpoints and for explain() without the hardware.
class Maker {
 public:
  /// Creates parameters with values. Parameter i uses key number i derived from `key`.
  Maker(AxisRules rules, Tensor key, DType dtype = kDefaultFloat);
  /// Creates abstract tensors.
  explicit Maker(AxisRules rules, DType dtype = kDefaultFloat);

  /// Creates a parameter of this shape; `names` are the names of its dimensions. It is computed on
  /// the devices of the mesh, each device computing its own part; nothing is transferred from the
  /// host.
  Tensor operator()(const Shape& shape, const PartitionSpec& names, const Initializer& initializer,
                    const Fans& fans = {}, SourceLocation where = SourceLocation::current());

  const AxisRules& rules() const { return rules_; }

  /// A Maker of abstract tensors that counts parameters.
  Maker counting() const { return Maker(rules_, dtype_); }
  /// The number of parameters created by now.
  std::uint32_t num_made() const { return made_; }
  /// Checks that each rule can apply: it names a dimension of a parameter created by
  /// now, of a layer of this library, of activations ("batch", "sequence", "time", "length",
  /// "tokens"), or of a mesh axis.
  /// @error not found, with the nearest names
  void check_rules(SourceLocation where) const;

  /// While alive, `make` creates each parameter for `count` layers, stacked along a new first
  /// dimension. Used by make_layers().
  class Stacking {
   public:
    /// @param layer has counted the parameters of one layer
    /// @error invalid argument if `count` is not positive
    Stacking(Maker& make, std::int64_t count, const Maker& layer, SourceLocation where);
    ~Stacking();
    Stacking(const Stacking&) = delete;
    Stacking& operator=(const Stacking&) = delete;

   private:
    Maker& make_;
    std::uint32_t first_;
  };

 private:
  // Layers that are stacked: the outermost first.
  struct Stack {
    std::int64_t count = 1;
    std::uint32_t parameters_per_layer = 0;
  };
  Tensor keys_of_layers(std::uint32_t first) const;
  AxisRules rules_;
  std::optional<Tensor> key_;
  DType dtype_;
  std::uint32_t made_ = 0;
  std::vector<Stack> stacks_;
  std::set<std::string> names_;  // of the dimensions of all parameters
};

/// Creates the parameters that `make(maker)` requests, with values from this seed. They are the
/// same on any mesh.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// nn::AxisRules rules(mesh, {{"hidden", "model"}});
/// nn::Mlp mlp = nn::create(rules, 1, [](nn::Maker& make) { return nn::make_mlp(make, 64, 256); });
/// mlp.up.weight.sharding()->spec();  // P(none, "model")
/// @endcode
/// @param strict whether a rule with a name that no dimension can have is an error
/// @error as Maker::check_rules(), if `strict`
template <class F>
auto create(const AxisRules& rules, std::int64_t seed, const F& make, DType dtype = kDefaultFloat,
            bool strict = true, SourceLocation where = SourceLocation::current()) {
  Maker maker(rules, random::key(seed), dtype);
  auto parameters = make(maker);
  if (strict) maker.check_rules(where);
  return parameters;
}

/// The same structure, of abstract tensors.
template <class F>
auto describe(const AxisRules& rules, const F& make, DType dtype = kDefaultFloat,
              bool strict = true, SourceLocation where = SourceLocation::current()) {
  Maker maker(rules, dtype);
  auto parameters = make(maker);
  if (strict) maker.check_rules(where);
  return parameters;
}

}  // namespace meshard::nn
