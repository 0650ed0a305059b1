// A mesh as a picture for the terminal.
#pragma once
#include <string>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// A grid of device ids drawn with box characters (UTF-8): the last axis runs to the right, the one
/// before it downwards, and a grid is drawn for each index of the axes before these.
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

}  // namespace meshard
