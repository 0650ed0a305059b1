// Shardings of results that the compiler would drop where values leave the program.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// For each result of the graph, the sharding that follows from the operands by the ops' sharding
/// rules, if the compiler would drop it: where it does not divide the result's size, or has a
/// sub-axis (ProgramMeshes::is_split_by_sub_axis); empty for all others.
///
/// The compiler chooses how unmarked results lie, but where values leave the program it drops
/// uneven shardings and, since PJRT API 0.106 at the latest, sub-axes (Shardy's pass
/// remove-sub-axes-in-input-output-shardings), and gives every device the whole. A result with a
/// sharding from here is pinned as a marked one is, and keeps its place: an updated parameter lies
/// as before.
std::vector<std::optional<Sharding>> dropped_shardings(const Graph& graph,
                                                       const ProgramMeshes& meshes);

/// The same with those dimensions closed that are split by sub-axes: where values enter or leave
/// the program the compiler drops the sub-axes of open dimensions.
Sharding closed_at_sub_axes(const Sharding& sharding, const ProgramMeshes& meshes);

}  // namespace meshard
