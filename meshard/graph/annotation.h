// What a node's results carry besides their types: the manual axes they are inside of, and the
// sharding that is part of a value.
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

/// A value: the manual axes of a mesh that a local value is inside of. Every device holds a value
/// of its own along the axes that it varies over; along the other manual axes all hold the same.
///
/// Regions nest: inside one over some axes there may be one over others. A value of the inner one
/// is inside the axes of both.
struct ManualAxes {
  Mesh mesh;
  /// Those of all regions that the value is in.
  AxisSet axes;
  /// A part of `axes`.
  AxisSet varying;
  /// Of a region inside others: what is manual around it, from the outermost region to the next
  /// one; each is a part of what follows, and of `axes`.
  std::vector<AxisSet> around = {};

  /// How many regions the value is in.
  std::size_t depth() const { return around.size() + 1; }
  /// The axes of the innermost region alone.
  AxisSet own() const { return around.empty() ? axes : axes - around.back(); }
  /// The place of the region `depth` deep that this one is in; what varies is cut to its axes.
  /// @pre 0 < depth <= depth()
  ManualAxes at_depth(std::size_t depth) const;
  /// The same place with other varying axes.
  ManualAxes with_varying(AxisSet other) const { return {mesh, axes, other, around}; }

  /// True if values of the two may meet in one op.
  bool same_place(const ManualAxes& other) const {
    return axes == other.axes && around == other.around && mesh == other.mesh;
  }
  /// True if this place is in a region inside the region of `other`.
  bool is_inside(const ManualAxes& other) const {
    return depth() > other.depth() && at_depth(other.depth()).same_place(other);
  }
  friend bool operator==(const ManualAxes& a, const ManualAxes& b) {
    return a.varying == b.varying && a.same_place(b);
  }
  /// `manual over {"x"} of mesh<x=2, y=4>`; inside a region over "x": `manual over {"y"} inside
  /// {"x"} of mesh<x=2, y=4>`.
  std::string to_string() const;
  /// `manual{"x"} varying{"x"}`; of regions inside others, the outermost first:
  /// `manual{"x"}{"y"} varying{"x"}`.
  std::string printed() const;
};

/// A value: what a node carries besides the types of its results. Nearly all nodes carry nothing;
/// nodes of one region share one object.
struct Annotations {
  /// Of all results. None: they are full values.
  std::optional<ManualAxes> manual = std::nullopt;
  /// One for each result: the sharding that is part of it, over a mesh with explicit axes. Empty:
  /// no result has one.
  InlineVector<std::optional<Sharding>, 1> shardings = {};

  friend bool operator==(const Annotations& a, const Annotations& b);
};
using AnnotationsPtr = std::shared_ptr<const Annotations>;

/// The manual axes that a value is inside of; nullptr for a full value.
const ManualAxes* manual_axes(const Value& value);
/// In how many regions a value is; 0: a full value.
std::size_t manual_depth(const Value& value);
std::size_t manual_depth(const Node& node);
/// The sharding of the value that carries a local one out of its innermost region and back into it:
/// dimension 0 (of a scalar, a new one) is split by the axes of the region that the value varies
/// over, in mesh order.
Sharding carried_sharding(const ManualAxes& place, const TensorType& local);
/// The sharding that is part of a value; nullptr: none.
const Sharding* explicit_sharding(const Value& value);
const Sharding* explicit_sharding(const Node& node, std::uint32_t result);

/// Appends what a result carries, as programs print it after its type: ` manual{"x"}
/// varying{"x"}`, ` @ Sharding(...)`. Nothing for a result without.
void append_annotation(std::string& out, const Node& node, std::uint32_t result);

}  // namespace meshard
