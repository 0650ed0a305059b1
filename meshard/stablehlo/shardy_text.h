// Meshes and shardings as Shardy writes them (openxla/shardy, `sdy.mesh` and `#sdy.sharding`).
#pragma once
#include <string>
#include <string_view>

#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The body of an `sdy.mesh`: `<["data"=2, "model"=4]>`. Logical devices are numbered by position.
/// Shardy cannot represent a slice, so its base is printed; the axes of the slice are axes and
/// sub-axes of the base (Mesh::axes_in_base).
std::string shardy_text(const Mesh& mesh);

/// The same, with logical devices numbered by position in `numbering`. If the two meshes order
/// their devices differently, the text lists them: `<["x"=2], device_ids=[1, 0]>`.
/// @error the two meshes do not have the same devices.
std::string shardy_text(const Mesh& mesh, const Mesh& numbering);

/// Parses both forms. The device ids are those in the text, or 0..n-1.
Result<Mesh> parse_shardy_mesh(std::string_view text);

/// The Shardy attribute: `#sdy.sharding<@mesh, [{"data"}, {}, {"x", "y"}, {?}], replicated={"z"}>`.
/// @param mesh_name the symbol of the mesh in the module
std::string shardy_text(const Sharding& sharding, std::string_view mesh_name = "mesh");

/// Parses the output of shardy_text, with or without `#sdy.sharding`, as a sharding over `mesh`.
/// The mesh symbol is ignored; an inline mesh must have the same axes as `mesh`.
/// @error other syntax, including priorities such as `{"x"}p1`; the errors of the Sharding
/// constructor.
Result<Sharding> parse_shardy_sharding(std::string_view text, const Mesh& mesh);

}  // namespace meshard
