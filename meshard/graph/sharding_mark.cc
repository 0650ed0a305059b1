#include "meshard/graph/sharding_mark.h"

namespace meshard {

std::optional<Sharding> marked_sharding(const Value& value) {
  const Attributes* attributes = value->attributes();
  if (!attributes || attributes->type() != typeid(ShardingMark)) return std::nullopt;
  return value->attributes_as<ShardingMark>().sharding;
}

}  // namespace meshard
