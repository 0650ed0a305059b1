// Draws meshes.
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// Draws the device ids of a mesh as grids of box characters (UTF-8). The last axis runs to the
/// right, the one before it downward. There is one grid for each index along the other axes, and
/// for each row of a slice.
///
/// ```
///           model →
///         ┌───┬───┬───┬───┐
///  data ↓ │ 0 │ 1 │ 2 │ 3 │
///         ├───┼───┼───┼───┤
///         │ 4 │ 5 │ 6 │ 7 │
///         └───┴───┴───┴───┘
/// ```
/// @error more than 4096 devices.
std::string picture(const Mesh& mesh);

/// The same as a self-contained SVG image; each device has its own color.
/// @error more than 4096 devices
std::string picture_svg(const Mesh& mesh);
/// The same image, but the devices of each group along `group_by` share a color.
/// @error more than 4096 devices; an unknown or repeated axis
std::string picture_svg(const Mesh& mesh, const AxisList& group_by);

}  // namespace meshard
