// Finds the collectives of a compiled module.
#pragma once
#include <optional>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/collective_axes.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/module.h"
#include "meshard/mesh/mesh.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard {

/// All collective instructions reachable when the module runs, in text order. Each is listed once;
/// Collective::executions is the number of executions. An asynchronous collective counts once, at
/// its start, whether a start instruction or inside an async-start. Where a compiler spreads one
/// collective over several fusions, each of its instructions is listed and the first has the bytes.
///
/// @param mesh the mesh whose positions the module's device numbers are; none: no axes are found.
/// @param graph the program that the module was compiled from; null for a module from elsewhere,
/// whose own op names and lines are then used.
/// @param slices for a module compiled for one of several slices: how it numbers devices.
/// @param names of a module from elsewhere: which of its ops are collectives. Without, only the
/// names of the instructions tell.
/// @error data loss if computations are cyclic or groups cannot be parsed
Result<std::vector<Collective>> find_collectives(
    const Executions& executions, const std::optional<Mesh>& mesh, const Graph* graph,
    const std::optional<SliceNumbering>& slices = std::nullopt,
    const stablehlo::ModuleOpNames& names = {});
/// The same for a module whose executions are not needed otherwise.
Result<std::vector<Collective>> find_collectives(const HloModule& module,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph);

}  // namespace meshard
