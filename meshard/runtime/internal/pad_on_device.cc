#include "meshard/runtime/internal/pad_on_device.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/pad.h"
#include "meshard/ops/slice.h"
#include "meshard/runtime/internal/reshard.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

// The tile at a position: a slice of `given`, padded at the end.
Tensor padded_tile(const Tensor& given, const Sharding& target, std::int64_t position) {
  Shape shard = shard_type_of(given.type(), target).shape;
  Dimensions starts, stops, low, high;
  for (const DimensionSlice& part : box_of(target, given.type().shape, position)) {
    high.push_back(shard[static_cast<std::int64_t>(low.size())] - part.size());
    starts.push_back(part.start);
    stops.push_back(part.stop);
    low.push_back(0);
  }
  return pad(slice(given, starts, stops), 0, low, high);
}

}  // namespace

std::vector<Tensor> tiles_on_device(Runtime& runtime, const Value& value, const Sharding& target,
                                    SourceLocation where) {
  return run_in_place(runtime, "cut", value, where, [&](const Tensor& given) {
    SourceScope line(where);
    std::vector<Tensor> tiles(static_cast<std::size_t>(target.num_tiles()));
    for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
      Tensor& tile = tiles[static_cast<std::size_t>(tile_number(target, p))];
      if (!tile.defined()) tile = padded_tile(given, target, p);
    }
    return tiles;
  });
}

}  // namespace meshard
