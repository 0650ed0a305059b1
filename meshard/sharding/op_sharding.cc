#include "meshard/sharding/op_sharding.h"

#include <algorithm>

#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

std::size_t count_split(const PartitionSpec& spec) {
  const std::vector<DimensionSpec>& all = spec.dimensions();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const DimensionSpec& d) { return !d.axes().empty(); }));
}

}  // namespace

std::string_view to_string(ShardingType type) {
  switch (type) {
    case ShardingType::kReplicated: return "REPLICATED";
    case ShardingType::kMaximal: return "MAXIMAL";
    case ShardingType::kTuple: return "TUPLE";
    case ShardingType::kTiled: return "TILED";
    case ShardingType::kManual: return "MANUAL";
    case ShardingType::kPartial: return "PARTIAL";
    case ShardingType::kUnknown: return "UNKNOWN";
  }
  return "UNKNOWN";
}

ShardingType sharding_type(const PartitionSpec& spec, std::int64_t num_devices) {
  if (num_devices == 1) return ShardingType::kMaximal;
  std::size_t split = count_split(spec);
  if (split == 0) return ShardingType::kReplicated;
  return split < spec.size() ? ShardingType::kPartial : ShardingType::kTiled;
}

ShardingType sharding_type(const Sharding& sharding) {
  if (!sharding.unreduced_axes().empty()) return ShardingType::kUnknown;
  if (sharding.rank() == 0) return ShardingType::kReplicated;
  if (count_split(sharding.spec()) + sharding.unused_axes().size() > sharding.rank())
    return ShardingType::kPartial;
  return sharding_type(sharding.spec(), sharding.mesh().size());
}

ShardingType sharding_type(const TileAssignment& tiles) {
  switch (tiles.kind) {
    case TileKind::kReplicated: return ShardingType::kReplicated;
    case TileKind::kMaximal: return ShardingType::kMaximal;
    case TileKind::kManual: return ShardingType::kManual;
    case TileKind::kUnknown:
    case TileKind::kUnreduced: return ShardingType::kUnknown;
    case TileKind::kTiled: break;
  }
  if (tiles.replicate_on_last_tile_dim) return ShardingType::kPartial;
  for (TileKind kind : tiles.last_tile_dims)
    if (kind != TileKind::kReplicated)
      return kind == TileKind::kManual ? ShardingType::kManual : ShardingType::kUnknown;
  return tiles.last_tile_dims.empty() ? ShardingType::kTiled : ShardingType::kPartial;
}

ShardingType canonical_type(const Sharding& sharding) {
  return sharding_type(tile_assignment(sharding));
}

OpSharding OpSharding::canonical() const {
  OpSharding result = *this;
  for (TileAssignment& element : result.elements_) element = element.canonical();
  return result;
}

std::string OpSharding::to_string() const {
  return is_tuple_ ? cat('{', join(elements_, ", "), '}') : elements_[0].to_string();
}

Result<OpSharding> OpSharding::parse(std::string_view text) {
  return parse_whole("sharding", text, [](TextScanner& scanner) {
    TextScanner ahead = scanner;
    bool is_tuple = ahead.accept("{") && (ahead.accept("{") || ahead.accept("}"));
    if (!is_tuple) return OpSharding(TileAssignment::read(scanner));
    std::vector<TileAssignment> elements;
    scanner.expect("{");
    scanner.list("}", [&] { elements.push_back(TileAssignment::read(scanner)); });
    return OpSharding(std::move(elements));
  });
}

}  // namespace meshard
