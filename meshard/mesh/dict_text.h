// The text form of torch_xla's meshes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// The text of a mesh as torch_xla 2.9 prints and reads it:
/// `{'device_ids': [0, 1], 'mesh_shape': (2, 1), 'axis_names': ('x', 'y')}`. Default axis names
/// (`axis_0`, `axis_1`, ...) are printed as `None`.
/// @error the mesh has several rows.
std::string mesh_dict_text(const Mesh& mesh);

/// Parses this text. The three entries may be in any order, lists in brackets or parentheses, names
/// in single or double quotes; `None` means no names.
Result<Mesh> parse_mesh_dict(std::string_view text);

}  // namespace meshard
