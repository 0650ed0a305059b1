// The fingerprint of a graph: what a program computes, without its source lines.
#include "meshard/base/fingerprint.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/attribute_text.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"

namespace meshard {
namespace {

void append_number(std::string& out, std::uint64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_leaf_key(std::string& out, const Value& leaf) {
  attribute_text::append_key(out, leaf.type());
  if (const Sharding* sharding = leaf_sharding(leaf))
    attribute_text::append_key(out, *sharding);
  else
    out.push_back('-');
  // For a parameter of a body.
  if (const ManualAxes* manual = manual_axes(leaf))
    attribute_text::append_key(out,
                               cat(*manual, " varying", manual->varying.to_string(manual->mesh)));
}

}  // namespace

Fingerprint Graph::fingerprint() const {
  std::string key;
  append_key(key);
  return meshard::fingerprint(key);
}

void Graph::append_key(std::string& key) const {
  key.reserve(key.size() + 32 * state_->nodes.size() + 256);
  append_number(key, state_->parameters.size());
  for (const Value& leaf : state_->parameters) append_leaf_key(key, leaf);
  append_number(key, state_->captured.size());
  for (const Value& leaf : state_->captured) append_leaf_key(key, leaf);
  auto append_value = [&](const Value& value) {
    append_number(key, (std::uint64_t{number(value.node())} << 32) | value.index());
  };
  for (const Node* node : state_->nodes) {
    key.append(node->op().name);
    key.push_back('\0');
    if (node->attributes()) node->attributes()->append_key(key);
    append_number(key, node->operands().size());
    for (const Value& operand : node->operands()) append_value(operand);
  }
  append_number(key, state_->results.size());
  for (const Value& result : state_->results) append_value(result);
}

}  // namespace meshard
