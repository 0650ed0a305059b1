#include "meshard/graph/superseded.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

bool same_attributes(const Node& a, const Node& b) {
  if (!a.attributes() || !b.attributes()) return !a.attributes() && !b.attributes();
  std::string first, second;
  a.attributes()->append_key(first);
  b.attributes()->append_key(second);
  return first == second;
}

// True if two values are known to be equal: the same value, or recorded alike from equal values.
// Batch rules prepare the operands of each loop separately, in a few steps.
bool same_value(const Value& a, const Value& b, std::span<const Node* const> apart, int steps = 4) {
  if (a == b) return true;
  if (std::find(apart.begin(), apart.end(), a.node()) != apart.end() ||
      std::find(apart.begin(), apart.end(), b.node()) != apart.end())
    return false;
  const Node &first = *a.node(), &second = *b.node();
  if (steps == 0 || a.index() != b.index() || &first.op() != &second.op()) return false;
  if (a.storage() || b.storage() || first.trace() != second.trace()) return false;
  if (&first.op() == &parameter_op || a.type() != b.type()) return false;
  if (!bodies_of(first).empty() || first.operands().size() != second.operands().size())
    return false;
  for (std::size_t i = 0; i < first.operands().size(); ++i)
    if (!same_value(first.operands()[i], second.operands()[i], apart, steps - 1)) return false;
  return same_attributes(first, second);
}

bool same_operands(const Node& a, const Node& b, std::span<const Node* const> apart) {
  return std::equal(a.operands().begin(), a.operands().end(), b.operands().begin(),
                    b.operands().end(),
                    [&](const Value& x, const Value& y) { return same_value(x, y, apart); });
}

}  // namespace

std::string extension_key(const Attributes& attributes, std::size_t num_results) {
  std::string key;
  attributes.append_key(key);
  std::string text = cat(fingerprint(key).to_string(), "/", num_results);
  for (std::size_t before : extended_counts(attributes.extends())) text += cat("/", before);
  return text;
}

std::vector<std::size_t> extended_counts(std::string_view extends) {
  std::vector<std::size_t> counts;
  for (std::size_t at = extends.find('/'); at < extends.size();) {
    std::size_t count = 0;
    for (++at; at < extends.size() && extends[at] != '/'; ++at)
      count = count * 10 + static_cast<std::size_t>(extends[at] - '0');
    counts.push_back(count);
  }
  return counts;
}

Body with_first_results(const Body& body, std::size_t count) {
  const Graph& graph = body.graph();
  std::uint64_t trace = graph.nodes().empty() ? 0 : graph.nodes()[0]->trace();
  return Body(Graph::build(graph.parameters(),
                           graph.results().first(std::min(count, graph.results().size())), trace));
}

std::unordered_map<const Node*, const Node*> superseded_nodes(const Graph& graph) {
  return superseded_nodes(graph.nodes());
}

std::unordered_map<const Node*, const Node*> superseded_nodes(std::span<const Node* const> nodes,
                                                              std::span<const Node* const> apart) {
  std::unordered_map<const Node*, const Node*> found;
  std::unordered_multimap<std::string_view, const Node*> extended;
  for (const Node* node : nodes)
    if (node->attributes() && !node->attributes()->extends().empty())
      extended.emplace(node->attributes()->extends(), node);
  if (extended.empty()) return found;
  for (const Node* node : nodes) {
    if (bodies_of(*node).empty()) continue;
    std::string key = extension_key(*node->attributes(), node->num_outputs());
    auto [next, end] = extended.equal_range(key);
    for (; next != end; ++next) {
      const Node* more = next->second;
      if (&more->op() != &node->op() || more->num_outputs() < node->num_outputs() ||
          !same_operands(*node, *more, apart))
        continue;
      found.emplace(node, more);
      break;
    }
  }
  return found;
}

}  // namespace meshard
