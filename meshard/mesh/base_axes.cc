// Mesh::axes_in_base: the axes of a derived mesh in terms of its base.
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

Result<AxisList> Mesh::axes_in_base(const AxisList& axes) const {
  return caught([&]() -> Result<AxisList> {  // an unknown or repeated axis
    Digits along = digits(axes);
    Mesh base = this->base();
    Result<Digits> positions = along.within(merged(base.all_axes()));
    if (!positions) return positions.error();
    return axes_of(base, positions->layout());
  });
}

}  // namespace meshard
