// Over which mesh axes the dimensions of parameters and activations are split, said once for a
// whole model.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"
#include "meshard/sharding/sharding.h"

namespace meshard::nn {

/// A value: a mesh, and for the names of dimensions the mesh axes that split them. Layers name the
/// dimensions of their parameters (`"heads"`, `"hidden"`; each layer's `make_` function says
/// which), so that another way to spread a model is another list of rules and nothing else.
///
/// A name that has no rule is looked up among the axes of the mesh; one that is neither is not
/// split. Of two dimensions of a tensor that would be split over the same axis, only the first is.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// nn::AxisRules rules(mesh, {{"batch", "data"}, {"heads", "model"}, {"hidden", "model"}});
/// rules.spec(P("embed", "heads", none));  // P(none, "model", none)
/// @endcode
class AxisRules {
 public:
  /// A dimension's name, and the axes that split it.
  using Rule = std::pair<std::string, DimensionSpec>;

  /// No mesh: nothing is split, marked or placed.
  AxisRules() = default;
  /// @error not found: a rule names an axis that the mesh lacks.
  AxisRules(Mesh mesh, std::vector<Rule> rules);  // NOLINT: no single argument

  const std::optional<Mesh>& mesh() const { return mesh_; }
  const std::vector<Rule>& rules() const { return rules_; }

  /// The spec of a tensor whose dimensions have the names that stand in `names` in place of axes.
  PartitionSpec spec(const PartitionSpec& names) const;
  /// The sharding of such a tensor; none without a mesh.
  std::optional<Sharding> sharding(const PartitionSpec& names) const;
  /// The tensor, marked so: for activations between layers.
  /// @error more names than dimensions.
  Tensor mark(In x, const PartitionSpec& names) const;

 private:
  DimensionSpec axes_of(const DimensionSpec& names) const;
  std::optional<Mesh> mesh_;
  std::vector<Rule> rules_;
};

}  // namespace meshard::nn
