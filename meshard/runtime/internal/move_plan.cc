#include "meshard/runtime/internal/move_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace meshard {
namespace {

// The positions that hold each tile, and what their places have sent so far.
class Senders {
 public:
  Senders(const Tiling& source, std::span<const int> places)
      : places_(places), holders_(source.holders()), known_(places.begin(), places.end()) {
    std::ranges::sort(known_);
    known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
    sent_.resize(known_.size());
  }

  /// Who gives a piece of `elements` of a tile to `place`. The second is true if it has it itself.
  std::pair<std::int64_t, bool> choose(std::int64_t tile, int place, std::int64_t elements) {
    const std::vector<std::int64_t>& holders = holders_[static_cast<std::size_t>(tile)];
    for (std::int64_t position : holders)
      if (place_of(position) == place) return {position, true};
    const auto first = static_cast<std::size_t>(place) % holders.size();
    std::int64_t chosen = holders[first];
    for (std::size_t k = 1; k < holders.size(); ++k)
      if (std::int64_t other = holders[(first + k) % holders.size()]; sent(other) < sent(chosen))
        chosen = other;
    sent(chosen) += elements;
    return {chosen, false};
  }

 private:
  int place_of(std::int64_t position) const { return places_[static_cast<std::size_t>(position)]; }
  std::int64_t& sent(std::int64_t position) {
    auto at = std::ranges::lower_bound(known_, place_of(position));
    return sent_[static_cast<std::size_t>(at - known_.begin())];
  }

  std::span<const int> places_;
  std::vector<std::vector<std::int64_t>> holders_;
  std::vector<int> known_;  // places, ascending
  std::vector<std::int64_t> sent_;
};

// The same tiles, over a mesh of the devices of `mesh`.
Sharding on_the_devices_of(const Sharding& sharding, const Mesh& mesh) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id : mesh.device_ids()) ids.push_back(id);
  std::span<const MeshAxis> axes = sharding.mesh().axes();
  return Sharding(
      Mesh({axes.begin(), axes.end()}, std::move(ids)).with_device_type(mesh.device_type()),
      sharding.spec());
}

// A sharding over the source's devices from which each tile of `target` is cut from one shard, or
// few if sizes are uneven: whole axes of the source's mesh split a dimension if they divide the
// target's number of tiles.
Sharding nested_for(const Sharding& source, const Sharding& target) {
  std::vector<const MeshAxis*> unused;
  for (const MeshAxis& axis : source.mesh().axes()) unused.push_back(&axis);
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < target.rank(); ++d) {
    std::int64_t tiles = target.num_tiles(d);
    AxisList axes;
    std::erase_if(unused, [&](const MeshAxis* axis) {
      if (axis->size == 1 || tiles % axis->size != 0) return false;
      tiles /= axis->size;
      axes.push_back(AxisRef(axis->name));
      return true;
    });
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(source.mesh(), PartitionSpec(std::move(dimensions)));
}

// Where the devices of the source reshard a value first, so that they send fewer pieces.
std::optional<Sharding> nearer(const Sharding& source, const Sharding& target, const Shape& shape) {
  if (pieces_of_tile(source, target, shape) <= kMostPiecesOfTile) return std::nullopt;
  Sharding made = source.mesh().size() == target.mesh().size()
                      ? on_the_devices_of(target, source.mesh())
                      : nested_for(source, target);
  if (pieces_of_tile(made, target, shape) > kMostPiecesOfTile) return std::nullopt;
  return made;
}

}  // namespace

std::vector<Move> plan_moves(const Tiling& source, std::span<const int> places,
                             std::span<const MoveTarget> targets) {
  std::vector<Move> moves;
  Senders senders(source, places);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Box& box = targets[i].box;
    if (box_shape(box).size() == 0) continue;
    source.for_each_in(box, [&](std::int64_t tile) {
      Box piece = *overlap(source.box(tile), box);
      auto [from, stays] = senders.choose(tile, targets[i].place, box_shape(piece).size());
      moves.push_back({from, i, std::move(piece), stays});
    });
  }
  return moves;
}

std::int64_t pieces_of_tile(const Sharding& source, const Sharding& target, const Shape& shape) {
  const IntVector shard = source.shard_shape(shape), tile = target.shard_shape(shape);
  std::int64_t count = 1;
  for (std::size_t d = 0; d < tile.size(); ++d) {
    const bool aligned = tile[d] % shard[d] == 0 || shard[d] % tile[d] == 0;
    const std::int64_t most = (tile[d] - 1) / shard[d] + (aligned ? 1 : 2);
    count *= std::min(most, source.num_tiles(d));
  }
  return count;
}

std::vector<MoveStep> plan_route(const Sharding& source, const Sharding& target, const Shape& shape,
                                 RouteOptions options) {
  using enum MoveStep::Way;
  using enum RouteOptions::Exchange;
  if (options.is_sharded && source.mesh().same_devices(target.mesh())) return {{kReshard, target}};
  if (options.exchange == kWhole) return {{kReadAndPlace, target}};
  std::vector<MoveStep> steps;
  Sharding from = source;
  if (!source.unreduced_axes().empty())
    steps.push_back({kReshard, from = source.with_unreduced({})});
  const Sharding sent = target.with_unreduced({});
  const bool in_place = has_tiles_in_place(from, sent);
  if (std::optional<Sharding> part = in_place ? std::nullopt : part_in_place(from, sent)) {
    steps.push_back({kCarry, *part});
    steps.push_back({kReshard, target});
    return steps;
  }
  if (options.exchange == kPieces && !in_place) {
    steps.push_back({kReceive, sent});
  } else {
    if (std::optional<Sharding> first = nearer(from, sent, shape))
      steps.push_back({kReshard, *std::move(first)});
    steps.push_back({kCarry, sent});
  }
  if (sent != target) steps.push_back({kReshard, target});
  return steps;
}

}  // namespace meshard
