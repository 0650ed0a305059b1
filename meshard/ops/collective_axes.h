#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// A value: the mesh axes that a collective runs over, as a parameter: `"x"`, `{"x", "y"}`,
/// `AxisRef("x", 1, 2)`. The first axis is the most significant in the order of a group's members.
class CollectiveAxes {
 public:
  CollectiveAxes(const char* axis) : axes_{AxisRef(axis)} {}            // NOLINT: a parameter
  CollectiveAxes(std::string_view axis) : axes_{AxisRef(axis)} {}       // NOLINT
  CollectiveAxes(const std::string& axis) : axes_{AxisRef(axis)} {}     // NOLINT
  CollectiveAxes(AxisRef axis) : axes_{std::move(axis)} {}              // NOLINT
  CollectiveAxes(std::initializer_list<AxisRef> axes) : axes_(axes) {}  // NOLINT
  CollectiveAxes(AxisList axes) : axes_(std::move(axes)) {}             // NOLINT

  const AxisList& list() const { return axes_; }

 private:
  AxisList axes_;
};

}  // namespace meshard
