#include "meshard/graph/named_mesh.h"

#include <unordered_set>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {

const Mesh* named_mesh(const Node& node) {
  if (node.attributes() && node.attributes()->type() == typeid(ShardingMark))
    return &node.attributes_as<ShardingMark>().sharding->mesh();
  if (node.annotations()) {
    if (node.annotations()->manual) return &node.annotations()->manual->mesh;
    for (const auto& sharding : node.annotations()->shardings)
      if (sharding) return &sharding->mesh();
  }
  for (const Body& body : bodies_of(node))
    for (const Node* inner : body.graph().nodes())
      if (const Mesh* mesh = named_mesh(*inner)) return mesh;
  return nullptr;
}

bool depends_on_placed(const Value& value) {
  std::vector<const Node*> waiting{value.node()};
  std::unordered_set<const Node*> seen;
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second || node->is_unplaced()) continue;
    bool leaf = node->storage() || &node->op() == &parameter_op;
    if (leaf ? !is_unplaced(Value(const_cast<Node*>(node))) : named_mesh(*node) != nullptr)
      return true;
    if (leaf) continue;
    for (const Value& operand : node->operands()) waiting.push_back(operand.node());
  }
  return false;
}

}  // namespace meshard
