// What a node's results carry besides their types: the manual axes they are inside of, and the
// sharding that is part of a value.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "meshard/base/inline_vector.h"
#include "meshard/graph/node.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the manual axes of a mesh that a local value is inside of. Every device holds a value
/// of its own along the axes that it varies over; along the other manual axes all hold the same.
struct ManualAxes {
  Mesh mesh;
  AxisSet axes;
  /// A part of `axes`.
  AxisSet varying;

  /// True if values of the two may meet in one op.
  bool same_place(const ManualAxes& other) const {
    return axes == other.axes && mesh == other.mesh;
  }
  friend bool operator==(const ManualAxes& a, const ManualAxes& b) {
    return a.varying == b.varying && a.same_place(b);
  }
  /// `manual over {"x"} of mesh<x=2, y=4>`.
  std::string to_string() const;
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
/// The sharding of the full value that carries a local one out of its manual axes and back into
/// them: dimension 0 (of a scalar, a new one) is split by the axes that the value varies over, in
/// mesh order.
Sharding carried_sharding(const ManualAxes& place, const TensorType& local);
/// The sharding that is part of a value; nullptr: none.
const Sharding* explicit_sharding(const Value& value);
const Sharding* explicit_sharding(const Node& node, std::uint32_t result);

/// Appends what a result carries, as programs print it after its type: ` manual{"x"}
/// varying{"x"}`, ` @ Sharding(...)`. Nothing for a result without.
void append_annotation(std::string& out, const Node& node, std::uint32_t result);

}  // namespace meshard
