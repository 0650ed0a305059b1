// Random meshes and axes for property tests.
#pragma once
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/mesh.h"
#include "tests/support/random.h"

namespace meshard {

/// Up to 4 axes and 192 devices; half of the meshes have shuffled or sparse device ids.
inline Mesh random_mesh(TestRandom& random) {
  const std::int64_t sizes[] = {1, 2, 2, 3, 4, 4, 6, 8};
  std::vector<MeshAxis> axes;
  std::int64_t size = 1;
  for (std::int64_t i = random.between(0, 4); i > 0; --i) {
    std::int64_t axis = sizes[random.between(0, 7)];
    if (size * axis > 192) continue;
    size *= axis;
    axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), axis});
  }
  if (random.between(0, 1) == 0) return Mesh(axes);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  std::int64_t step = random.between(1, 3), first = random.between(0, 5);
  for (std::int64_t& id : ids) id = first + step * id;
  std::shuffle(ids.begin(), ids.end(), random);
  return Mesh(axes, ids);
}

/// Some disjoint parts of the axes of a mesh, in random order.
inline AxisList random_axes(TestRandom& random, const Mesh& mesh) {
  std::vector<AxisRef> parts;
  for (const MeshAxis& axis : mesh.axes()) {
    std::int64_t pre = 1;
    while (pre < axis.size) {  // cut the axis into parts and take some of them
      std::int64_t part = random.between(2, axis.size / pre);
      while (axis.size / pre % part != 0) --part;
      if (part == 1) part = axis.size / pre;
      if (random.between(0, 1) == 0) parts.push_back({axis.name, pre, part});
      pre *= part;
    }
    if (axis.size == 1 && random.between(0, 1) == 0) parts.push_back(axis.name);
  }
  std::shuffle(parts.begin(), parts.end(), random);
  return AxisList(parts.begin(), parts.end());
}

}  // namespace meshard
