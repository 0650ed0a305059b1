// A sharding as a picture: which devices hold which tile.
#pragma once
#include <string>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// A grid for the terminal (box characters, UTF-8): one cell a tile, with the ids of the devices
/// that hold it; replicas share a cell. Dimensions run downwards and to the right; of a tensor of
/// more than two dimensions the split ones are drawn, a grid for each index of those before the
/// last two.
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
/// @error more than 4096 devices: too many to look at.
std::string picture(const Sharding& sharding);

/// The same as a self-contained SVG image: each device has a color of its own, and a tile with
/// several devices is striped in theirs.
/// @error as above
std::string picture_svg(const Sharding& sharding);

}  // namespace meshard
