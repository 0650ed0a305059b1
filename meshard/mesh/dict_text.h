// The text form of torch_xla's meshes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// `{'device_ids': [0, 1], 'mesh_shape': (2, 1), 'axis_names': ('x', 'y')}`, as torch_xla 2.9
/// prints and reads a mesh. Axes that are called by their number print as `None`.
/// @error the mesh has several rows.
std::string mesh_dict_text(const Mesh& mesh);

/// Reads it: the three entries in any order, lists in brackets or parentheses, names in single or
/// double quotes, `None` for no names.
Result<Mesh> parse_mesh_dict(std::string_view text);

}  // namespace meshard
