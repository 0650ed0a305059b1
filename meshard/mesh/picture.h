// A mesh as a picture.
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// A grid of device ids drawn with box characters (UTF-8): the last axis runs to the right, the one
/// before it downwards, and a grid is drawn for each index of the axes before these, and for each
/// row of a slice.
///
/// ```
///           model →
///         ┌───┬───┬───┬───┐
///  data ↓ │ 0 │ 1 │ 2 │ 3 │
///         ├───┼───┼───┼───┤
///         │ 4 │ 5 │ 6 │ 7 │
///         └───┴───┴───┴───┘
/// ```
/// @error more than 4096 devices: too many to look at.
std::string picture(const Mesh& mesh);

/// The same as a self-contained SVG image; each device has a colour of its own.
/// @error as above
std::string picture_svg(const Mesh& mesh);
/// The devices of one group along `group_by` have one colour.
/// @error as above; unknown or repeated axis
std::string picture_svg(const Mesh& mesh, const AxisList& group_by);

}  // namespace meshard
