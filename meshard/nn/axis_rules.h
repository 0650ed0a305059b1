// Rules that map the named dimensions of parameters and activations to mesh axes, for a whole
// model.
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

/// A value: a mesh, and the mesh axes that split each named dimension. Layers name the dimensions
/// of their parameters (`"heads"`, `"hidden"`; listed at each layer's `make_` function), so that
/// another sharding of a model needs only another list of rules.
///
/// A name without a rule is looked up among the axes of the mesh; if there is no such axis, the
/// dimension is not split. If several dimensions of a tensor would be split over the same axis,
/// only the first one is.
///
/// @code
/// Mesh mesh({{"data", 2}, {"model", 4}});
/// nn::AxisRules rules(mesh, {{"batch", "data"}, {"heads", "model"}, {"hidden", "model"}});
/// rules.spec(P("embed", "heads", none));  // P(none, "model", none)
/// @endcode
class AxisRules {
 public:
  /// A dimension name, and the axes that split it.
  using Rule = std::pair<std::string, DimensionSpec>;

  /// Without a mesh: nothing is split, marked or placed.
  AxisRules() = default;
  /// @error not found: a rule names an axis that the mesh does not have.
  AxisRules(Mesh mesh, std::vector<Rule> rules,
            SourceLocation where = SourceLocation::current());  // NOLINT: no single argument

  const std::optional<Mesh>& mesh() const { return mesh_; }
  const std::vector<Rule>& rules() const { return rules_; }

  /// The partition spec of a tensor whose dimensions are named by `names`, in place of axes.
  PartitionSpec spec(const PartitionSpec& names,
                     SourceLocation where = SourceLocation::current()) const;
  /// The sharding of such a tensor; nullopt without a mesh.
  std::optional<Sharding> sharding(const PartitionSpec& names,
                                   SourceLocation where = SourceLocation::current()) const;
  /// Marks a tensor with that sharding: for activations between layers.
  /// @error more names than dimensions.
  Tensor mark(In x, const PartitionSpec& names) const;

 private:
  DimensionSpec axes_of(const DimensionSpec& names) const;
  std::optional<Mesh> mesh_;
  std::vector<Rule> rules_;
};

}  // namespace meshard::nn
