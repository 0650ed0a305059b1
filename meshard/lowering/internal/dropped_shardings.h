// Shardings of results that the compiler would drop at the program's boundary.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// For each result of the graph, the sharding that the compiler would drop; empty if there is none.
/// It follows from the operands by the ops' sharding rules, and it either does not divide the
/// result's size or uses a sub-axis (ProgramMeshes::is_split_by_sub_axis).
///
/// The compiler chooses the shardings of unmarked results. At the program's boundary, however, it
/// drops uneven shardings and, since PJRT API 0.106 at the latest, sub-axes (Shardy's pass
/// remove-sub-axes-in-input-output-shardings), and replicates the value. Lowering pins a result
/// with a sharding from this function like a marked one, so that it keeps its layout: an updated
/// parameter is laid out as before.
/// A sub-axis that the compiler cannot rewrite (ProgramMeshes::can_express) is left to it.
std::vector<std::optional<Sharding>> dropped_shardings(const Graph& graph,
                                                       const ProgramMeshes& meshes);

/// The same sharding, with those dimensions closed that the compiler gets wrong at the program's
/// boundary if they are open: it drops their sub-axes, and does not report that a value whose
/// other dimensions it has chosen is unreduced.
Sharding closed_at_boundary(const Sharding& sharding, const ProgramMeshes& meshes);

}  // namespace meshard
