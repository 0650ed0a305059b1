// TPU topologies by name, without a TPU or its plugin.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// The topology of a named TPU, as libtpu 0.0.51 lists its devices. Names are `v5e:8x8`,
/// `v5p:4x4x4`, `v5e:16x16*2` for several slices, `v4:4x4x4/megacore` for a v4 with one device per
/// chip. Families: v2, v3, v4, v5e, v5p, v6e, tpu7x.
///
/// Each process drives 2 x 2 chips; processes are numbered x first. Ids number the devices of a
/// chip first, then x, y, z. With several slices the ids of slice s start at (s + 1) * 100000.
/// @error an unknown name; a size that is below 1 or does not fit the processes; more than 100000
/// devices in one of several slices, or 16777216 in all.
Result<Topology> tpu_topology(std::string_view name);

}  // namespace meshard
