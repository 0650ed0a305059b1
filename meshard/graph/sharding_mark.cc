#include "meshard/graph/sharding_mark.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"

namespace meshard {

std::optional<Sharding> marked_sharding(const Value& value) {
  const Attributes* attributes = value->attributes();
  if (!attributes || attributes->type() != typeid(ShardingMark)) return std::nullopt;
  return value->attributes_as<ShardingMark>().sharding;
}

std::optional<Sharding> specified_sharding(const Tensor& x) {
  const Value& value = x.value();
  if (value.type().rank() == 0 && !explicit_sharding(value)) return std::nullopt;
  bool is_leaf = &value->op() == &array_op || &value->op() == &parameter_op;
  if (is_leaf || marked_sharding(value) || explicit_sharding(value)) return x.sharding();
  return std::nullopt;
}

}  // namespace meshard
