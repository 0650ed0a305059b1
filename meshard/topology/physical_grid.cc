#include "meshard/topology/physical_grid.h"

#include <algorithm>

#include "meshard/base/error.h"

namespace meshard {
namespace {

constexpr std::int64_t kEmptyPlace = -1;

std::int64_t place_in(const PhysicalGrid& grid, const IntVector& low,
                      const DeviceAttributes& device) {
  std::int64_t place = 0;
  for (std::size_t k = 0; k < low.size(); ++k)
    place = place * grid.shape[k] + device.coords[k] - low[k];
  return grid.has_cores ? place * grid.shape.back() + device.core_on_chip : place;
}

[[noreturn]] void grid_error(SourceLocation where, std::string what) {
  throw Error(ErrorCode::kFailedPrecondition, "[topology] " + std::move(what), where);
}

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

CoordinateBox box_of(std::span<const DeviceAttributes> devices) {
  IntVector low = devices.front().coords, high = low;
  for (const DeviceAttributes& device : devices) {
    const std::int64_t* at = device.coords.data();
    for (std::size_t k = 0; k < low.size(); ++k) {
      low[k] = std::min(low[k], at[k]);
      high[k] = std::max(high[k], at[k]);
    }
  }
  for (std::size_t k = 0; k < low.size(); ++k) high[k] += 1 - low[k];
  return {low, high};
}

PhysicalGrid physical_grid(std::span<const DeviceAttributes> devices, SourceLocation where) {
  if (devices.front().coords.empty()) grid_error(where, "the devices have no coordinates");
  CoordinateBox box = box_of(devices);
  PhysicalGrid grid{box.size, {}, false};
  std::int64_t cores = 1, places = 1;
  for (const DeviceAttributes& device : devices) cores = std::max(cores, device.core_on_chip + 1);
  if (cores > 1) {
    grid.has_cores = true;
    grid.shape.push_back(cores);
  }
  for (std::int64_t size : grid.shape)  // stops early: the full product may overflow
    if (places <= std::ssize(devices)) places *= size;
  if (places != std::ssize(devices))
    grid_error(where, cat(devices.size(), " devices do not fill a grid of ",
                          join(grid.shape, " x "), " places"));
  grid.ids.assign(devices.size(), kEmptyPlace);
  for (const DeviceAttributes& device : devices) {
    std::int64_t& id = grid.ids[static_cast<std::size_t>(place_in(grid, box.low, device))];
    if (id != kEmptyPlace)
      grid_error(where,
                 cat("devices ", id, " and ", device.id, " are at the same place of the grid"));
    id = device.id;
  }
  return grid;
}

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
