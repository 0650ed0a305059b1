// TPUs by name, without a TPU and without its plugin.
#pragma once
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// The devices of a TPU as libtpu 0.0.51 lists them: `v5e:8x8`, `v5p:4x4x4`, several slices
/// `v5e:16x16*2`, one device for each chip of a v4 `v4:4x4x4/megacore`. Families: v2, v3, v4, v5e,
/// v5p, v6e, tpu7x.
///
/// Processes drive 2 x 2 chips and are counted x fastest; ids count devices of a chip, x, y, z.
/// With several slices the ids of slice s begin at (s + 1) * 100000.
/// @error the name is none of these; a size is below 1 or does not suit the processes; more than
/// 100000 devices in one of several slices, or 16777216 in all.
Result<Topology> tpu_topology(std::string_view name);

}  // namespace meshard
