#include "meshard/topology/board_order.h"

#include <algorithm>
#include <span>

#include "meshard/topology/physical_grid.h"
#include "meshard/topology/tpu_generation.h"

namespace meshard {
namespace {

using Order = std::vector<std::size_t>;

// Orders of the places on a board. Chips are numbered x first, then y.
const Order& ring_of_2x2_with_two_cores() {
  static const Order order = {0, 1, 2, 3, 6, 7, 4, 5};
  return order;
}
const Order& ring_of_2x2() {
  static const Order order = {0, 1, 3, 2};
  return order;
}
const Order& rows_of_2x4() {
  static const Order order = {0, 1, 2, 3, 7, 6, 5, 4};
  return order;
}
const Order& ring_of_4x4() {
  static const Order order = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};
  return order;
}

using BoardDevices = std::span<const DeviceAttributes>;

// The device ids board by board, each board in the given order.
std::vector<std::int64_t> board_by_board(BoardDevices devices, const Order& order) {
  std::vector<std::int64_t> ids;
  for (std::size_t first = 0; first < devices.size(); first += order.size())
    for (std::size_t place : order) ids.push_back(devices[first + place].id);
  return ids;
}

std::vector<std::int64_t> as_listed(BoardDevices devices) { return board_by_board(devices, {0}); }

std::optional<std::vector<std::int64_t>> two_core_order(BoardDevices devices, IntView shape) {
  const Order& ring = ring_of_2x2_with_two_cores();
  if (devices.size() == ring.size() || (!shape.empty() && shape.back() == 8))
    return board_by_board(devices, ring);
  return as_listed(devices);
}

std::optional<std::vector<std::int64_t>> flat_chip_order(BoardDevices devices, IntView shape) {
  constexpr std::size_t kLargestBoard = 4 * 4;
  if (devices.size() > kLargestBoard) return std::nullopt;
  IntVector end;  // a board that does not start at the origin has no special order
  for (CoordinateBox box = box_of(devices); end.size() < box.low.size();)
    end.push_back(box.low[end.size()] + box.size[end.size()]);
  auto board = [&](std::int64_t x, std::int64_t y) {
    return end == IntVector{x, y, 1} && std::ssize(devices) == x * y;
  };
  bool one_axis = std::find(shape.begin(), shape.end(), std::ssize(devices)) != shape.end();
  const Order* order = board(2, 2)               ? &ring_of_2x2()
                       : board(2, 4)             ? &rows_of_2x4()
                       : board(4, 4) && one_axis ? &ring_of_4x4()
                                                 : nullptr;
  if (!order) return std::nullopt;
  std::vector<DeviceAttributes> sorted(devices.begin(), devices.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::lexicographical_compare(a.coords.rbegin(), a.coords.rend(), b.coords.rbegin(),
                                        b.coords.rend());
  });
  return board_by_board(sorted, *order);
}

}  // namespace

std::optional<std::vector<std::int64_t>> board_order(BoardDevices devices, IntView shape) {
  const TpuGeneration* tpu = tpu_generation_of(devices.front().kind);
  if (!tpu) return std::nullopt;
  switch (tpu->board_order) {
    case TpuBoardOrder::kAsListed: break;
    case TpuBoardOrder::kRingOfEight: return two_core_order(devices, shape);
    case TpuBoardOrder::kRingsOfTwoBoards:
      if (devices.size() == 8 || devices.size() == 16)
        return board_by_board(devices, ring_of_2x2_with_two_cores());
      break;
    case TpuBoardOrder::kFlat:
      if (!devices.front().coords.empty()) return flat_chip_order(devices, shape);
      break;
  }
  return std::nullopt;
}

}  // namespace meshard
