// A mesh as Shardy writes it (openxla/shardy, `sdy.mesh`).
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"

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
Mesh read_shardy_mesh(TextScanner& scanner);

}  // namespace meshard
