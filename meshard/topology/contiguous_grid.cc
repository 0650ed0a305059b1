#include "meshard/topology/contiguous_grid.h"

#include <algorithm>

#include "meshard/base/error.h"

namespace meshard {
namespace {

// A grid, a mesh shape without sizes of 1, and the order of directions to use for the two.
struct KnownOrder {
  IntVector grid, shape;
  std::size_t order[3];
};

const std::vector<KnownOrder>& known_orders() {
  static const std::vector<KnownOrder> orders = {
      {{2, 2, 1}, {2, 2}, {0, 1, 2}},  {{2, 2, 4}, {4, 4}, {0, 1, 2}},
      {{4, 4, 4}, {16, 4}, {0, 2, 1}}, {{4, 8, 8}, {64, 4}, {0, 2, 1}},
      {{4, 8, 8}, {4, 64}, {0, 2, 1}}, {{8, 8, 8}, {64, 8}, {0, 2, 1}}};
  return orders;
}

PhysicalGrid reordered(const PhysicalGrid& grid, const std::size_t (&order)[3]) {
  IntVector strides = {grid.shape[1] * grid.shape[2], grid.shape[2], 1};
  PhysicalGrid turned;
  for (std::size_t k : order) turned.shape.push_back(grid.shape[k]);
  for (std::int64_t i = 0; i < turned.shape[0]; ++i)
    for (std::int64_t j = 0; j < turned.shape[1]; ++j)
      for (std::int64_t k = 0; k < turned.shape[2]; ++k)
        turned.ids.push_back(grid.ids[static_cast<std::size_t>(
            i * strides[order[0]] + j * strides[order[1]] + k * strides[order[2]])]);
  return turned;
}

}  // namespace

PhysicalGrid contiguous_grid(const PhysicalGrid& grid, IntView shape, SourceLocation where) {
  IntVector sizes;
  for (std::int64_t size : shape)
    if (size != 1) sizes.push_back(size);
  for (const KnownOrder& known : known_orders())
    if (known.grid == grid.shape && known.shape == sizes) return reordered(grid, known.order);
  throw_invalid(where, "[topology] no order of the grid ", join(grid.shape, " x "),
                " keeps the devices of each process together in a mesh of ", join(shape, " x "));
}

}  // namespace meshard
