// Which directions of a TPU slice wrap around.
#pragma once
#include <optional>
#include <string_view>

#include "meshard/topology/topology.h"

namespace meshard {

/// For each direction of a slice with `extent` chips: whether it closes to a ring. Empty if that is
/// not known for devices of this kind. A direction closes if its size is a multiple of the
/// generation's TpuGeneration::closing_multiple.
std::optional<Topology::Wrap> closed_directions(std::string_view kind, const IntVector& extent);

}  // namespace meshard
