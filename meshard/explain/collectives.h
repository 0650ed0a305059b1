// The collectives of a compiled module.
#pragma once
#include <optional>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collective.h"
#include "meshard/explain/slice_numbering.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/executions.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// Every collective instruction that running the module can reach, once each, in the order of the
/// module's text; Collective::executions says how often it runs. An asynchronous one counts once,
/// at its start, on its own or inside an async-start. Where a compiler spreads one collective over
/// several fusions, each of its instructions is listed and the first has the bytes.
///
/// @param mesh the mesh whose positions the module's device numbers are; without one, no axes.
/// @param graph the program that the module was compiled from, or null for a module from elsewhere:
/// then places are what the module itself says.
/// @param slices if the module is that of one slice of several: what its device numbers mean.
/// @error data loss if computations call one another in a circle or groups cannot be read
Result<std::vector<Collective>> find_collectives(
    const Executions& executions, const std::optional<Mesh>& mesh, const Graph* graph,
    const std::optional<SliceNumbering>& slices = std::nullopt);
/// The same of a module that nothing else is asked about.
Result<std::vector<Collective>> find_collectives(const pjrt::HloModule& module,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph);

}  // namespace meshard
