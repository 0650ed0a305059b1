// What the results of a node carry in addition to their types: their manual axes, their explicit
// sharding, and whether they are weakly typed.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/graph/node.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the manual axes that a local value is inside of. Along the axes that it varies over,
/// each device may hold a different value; along the other manual axes, all devices hold the same
/// one.
///
/// Regions nest: a region over some axes may contain a region over others. A value of the inner
/// region is inside the axes of both.
struct ManualAxes {
  Mesh mesh;
  /// The axes of all regions that the value is in.
  AxisSet axes;
  /// A subset of `axes`.
  AxisSet varying;
  /// For nested regions: the axes that are manual in each enclosing region, outermost first. Each
  /// set is a subset of the next one and of `axes`.
  std::vector<AxisSet> around = {};

  /// The number of regions that the value is in.
  std::size_t depth() const { return around.size() + 1; }
  /// The axes that the innermost region adds.
  AxisSet own() const { return around.empty() ? axes : axes - around.back(); }
  /// The place of the enclosing region at `depth`; `varying` is restricted to its axes.
  /// @pre 0 < depth <= depth()
  ManualAxes at_depth(std::size_t depth) const;
  /// The same place with other varying axes.
  ManualAxes with_varying(AxisSet other) const { return {mesh, axes, other, around}; }

  /// True if one op may combine values of the two places.
  bool same_place(const ManualAxes& other) const {
    return axes == other.axes && around == other.around && mesh == other.mesh;
  }
  /// True if this place is nested in the region of `other`.
  bool is_inside(const ManualAxes& other) const {
    return depth() > other.depth() && at_depth(other.depth()).same_place(other);
  }
  friend bool operator==(const ManualAxes& a, const ManualAxes& b) {
    return a.varying == b.varying && a.same_place(b);
  }
  /// `manual over {"x"} of mesh<x=2, y=4>`; for a region inside one over "x": `manual over {"y"}
  /// inside {"x"} of mesh<x=2, y=4>`.
  std::string to_string() const;
  /// The form in printed programs: `manual{"x"} varying{"x"}`; for nested regions, the outermost
  /// first: `manual{"x"}{"y"} varying{"x"}`.
  std::string printed() const;
};

/// A value: what a node carries in addition to the types of its results. Nearly all nodes carry
/// nothing; the nodes of one region share one object.
struct Annotations {
  /// For all results. Empty: they are full values.
  std::optional<ManualAxes> manual = std::nullopt;
  /// The explicit sharding of each result, over a mesh with explicit axes. Empty if no result has
  /// one.
  InlineVector<std::optional<Sharding>, 1> shardings = {};
  /// For a weakly typed number (ops/definition/operand.h), the same number in the widest dtype of
  /// its kind. Not compared: it is used only while a program is recorded.
  Value wide = {};

  friend bool operator==(const Annotations& a, const Annotations& b);
};
using AnnotationsPtr = std::shared_ptr<const Annotations>;

/// The manual axes of a local value; nullptr for a full value.
const ManualAxes* manual_axes(const Value& value);
/// The number of regions that a value is in; 0 for a full value.
std::size_t manual_depth(const Value& value);
std::size_t manual_depth(const Node& node);
/// The sharding with which a local value crosses the border of its innermost region. Dimension 0
/// (for a scalar, an added one) is split by the axes of that region that the value varies over, in
/// mesh order.
Sharding carried_sharding(const ManualAxes& place, const TensorType& local);
/// The explicit sharding of a value; nullptr if it has none.
const Sharding* explicit_sharding(const Value& value);
const Sharding* explicit_sharding(const Node& node, std::uint32_t result);

/// Appends a result's annotation, as printed programs show it after the type: ` manual{"x"}
/// varying{"x"}`, ` @ Sharding(...)`. Appends nothing for a result without annotations.
void append_annotation(std::string& out, const Node& node, std::uint32_t result);

}  // namespace meshard
