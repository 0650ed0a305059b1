#include "meshard/graph/superseded.h"

#include <algorithm>

#include "meshard/graph/op_def.h"

namespace meshard {

std::string extension_key(const Attributes& attributes) {
  std::string key;
  attributes.append_key(key);
  return fingerprint(key).to_string();
}

std::unordered_map<const Node*, const Node*> superseded_nodes(const Graph& graph) {
  std::unordered_map<const Node*, const Node*> found;
  std::unordered_multimap<const Node*, const Node*> extended;  // by the first operand's node
  for (const Node* node : graph.nodes())
    if (node->attributes() && !node->attributes()->extends().empty() && !node->operands().empty())
      extended.emplace(node->operands()[0].node(), node);
  if (extended.empty()) return found;
  for (const Node* node : graph.nodes()) {
    if (!node->attributes() || !node->attributes()->bodies() || node->operands().empty()) continue;
    auto [next, end] = extended.equal_range(node->operands()[0].node());
    std::string key = next == end ? std::string() : extension_key(*node->attributes());
    for (; next != end; ++next) {
      const Node* more = next->second;
      std::span<const Value> a = node->operands(), b = more->operands();
      if (&more->op() != &node->op() || more->attributes()->extends() != key ||
          more->num_outputs() < node->num_outputs() ||
          !std::equal(a.begin(), a.end(), b.begin(), b.end()))
        continue;
      found.emplace(node, more);
      break;
    }
  }
  return found;
}

}  // namespace meshard
