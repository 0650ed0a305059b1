// A mesh as Shardy writes it (openxla/shardy, `sdy.mesh`).
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// The body of an `sdy.mesh`: `<["data"=2, "model"=4]>`. Position and logical device are the same.
/// A slice has no mesh of its own there: its base is printed, whose axes and sub-axes
/// (Mesh::axes_in_base) its axes are.
std::string shardy_text(const Mesh& mesh);

/// The same when `numbering` gives the logical devices their numbers: positions of `mesh` whose
/// devices sit elsewhere in `numbering` show as `<["x"=2], device_ids=[1, 0]>`.
/// @error the two meshes do not have the same devices.
std::string shardy_text(const Mesh& mesh, const Mesh& numbering);

/// Reads both forms; device ids are those written, or 0..n-1.
Result<Mesh> parse_shardy_mesh(std::string_view text);
Mesh read_shardy_mesh(TextScanner& scanner);

}  // namespace meshard
