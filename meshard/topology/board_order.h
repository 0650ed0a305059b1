// Device orders for small boards of known TPUs.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "meshard/topology/topology.h"

namespace meshard {

/// The device ids, in mesh order, that JAX 0.10 uses for boards of known TPUs. They do not depend
/// on the axes, except as listed. None if JAX has no such order for these devices and this shape.
///
/// - TPU v2, v3: for eight devices, or an innermost axis of eight, rings over boards of 2 x 2 chips
///   with two devices each; otherwise the order of the list.
/// - TPU 7x: the same rings for eight and sixteen devices.
/// - TPU v5e, v6e: a ring over 2 x 2 and 4 x 4 chips (the latter for one axis only), two rows for
///   2 x 4 chips.
std::optional<std::vector<std::int64_t>> board_order(std::span<const DeviceAttributes> devices,
                                                     IntView shape);

}  // namespace meshard
