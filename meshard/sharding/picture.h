// A sharding as a picture: which devices hold which tile.
#pragma once
#include <string>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// Draws a sharding as grids of box characters (UTF-8). Each cell is a tile and contains the ids of
/// the devices that hold it; replicas share a cell. Dimensions run downward and to the right. For a
/// tensor of more than two dimensions only the split dimensions are drawn, with one grid for each
/// index of all but the last two.
///
/// `picture(Sharding(Mesh({{"x", 2}, {"y", 2}}), P("y", none)))`:
/// ```
///                    dimension 1: none →
///                  ┌─────┐
/// dimension 0: y ↓ │ 0,2 │
///                  ├─────┤
///                  │ 1,3 │
///                  └─────┘
/// ```
/// @error more than 4096 devices.
std::string picture(const Sharding& sharding);

/// The same as a self-contained SVG image. Each device has its own color; a tile with several
/// devices is striped in their colors.
/// @error more than 4096 devices
std::string picture_svg(const Sharding& sharding);

}  // namespace meshard
