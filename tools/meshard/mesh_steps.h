// The arguments of `meshard mesh`: meshes, and operations on them.
#pragma once
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard::tool {

/// Parses `mesh<data=2, model=4>` in any form that a mesh prints, or only its axes:
/// `data=2,model=4`. If `devices` is not empty, it replaces the device ids: `4,5,6,7`,
/// `0,2,...,14`, or as a mesh prints them.
/// @error a text or the mesh is invalid.
Mesh read_mesh(std::string_view text, std::string_view devices);

/// Applies one step to a mesh. kMeshSteps lists the forms.
/// @error the step is invalid; the operation fails; a submesh of a device outside the mesh.
Mesh apply_step(const Mesh& mesh, std::string_view step);

inline constexpr std::string_view kMeshSteps =
    "Steps, each applied to the result of the previous one:\n"
    "  slice:data,model           these axes; the others become rows\n"
    "  permute:model,data         all axes in another order\n"
    "  flatten   flatten:NAME     all axes as one; its name is remembered by the root\n"
    "  flatten:a+b=NAME           some axes as one\n"
    "  unflatten:model:x=2,y=2    an axis as several, the most significant first\n"
    "  reshape:a=4,b=2            other axes over the same positions\n"
    "  rename:a=b,c=d             rename a to b, and c to d\n"
    "  squeeze   squeeze:a,b      without the axes of size 1, or without these\n"
    "  unsqueeze:one@0            a new axis of size 1, before axis 0\n"
    "  submesh:data,model@5       the devices that differ from device 5 along these axes only\n"
    "  root   base   as_root      the root or base of the mesh; the mesh as its own root\n";

}  // namespace meshard::tool
