// Tables keyed by nodes, and walks along their operands.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/node.h"

namespace meshard {

/// A map from nodes to small values. Nodes that were recorded one after another are neighbors in
/// the table: a pass over a program in order of recording, or along its operands, then reads memory
/// mostly in order, where a hash table of pointers would miss the processor's caches at each node.
/// Entries are not erased.
template <class T>
class NodeTable {
 public:
  /// The value of `node`, and whether it was added: then it is T().
  /// @post the pointer is valid until the next node is added
  std::pair<T*, bool> try_emplace(const Node& node) {
    Page& page = page_of(node.id() / kPage);
    std::uint32_t bit = bit_of(node);
    bool is_new = (page.present & bit) == 0;
    page.present |= bit;
    return {&page.values[node.id() % kPage], is_new};
  }
  /// Returns whether the node was added.
  bool insert(const Node& node) { return try_emplace(node).second; }

  /// nullptr if the node was not added.
  const T* find(const Node& node) const {
    if (pages_.empty()) return nullptr;
    std::uint32_t number = slots_[slot_of(node.id() / kPage)];
    if (number == 0) return nullptr;
    const Page& page = pages_[number - 1];
    return (page.present & bit_of(node)) != 0 ? &page.values[node.id() % kPage] : nullptr;
  }
  bool contains(const Node& node) const { return find(node) != nullptr; }

 private:
  // Ids of a program are consecutive, except for ids that other threads used in between.
  static constexpr std::uint64_t kPage = 32;
  struct Page {
    std::uint64_t key = 0;  // id / kPage
    std::uint32_t present = 0;
    std::array<T, kPage> values = {};
  };

  static std::uint32_t bit_of(const Node& node) { return std::uint32_t{1} << (node.id() % kPage); }

  // The slot of the page, or the empty one where it would be. @pre there are slots
  std::size_t slot_of(std::uint64_t key) const {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
    std::size_t mask = slots_.size() - 1;
    std::size_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(slots_.size()));
    while (slots_[at] != 0 && pages_[slots_[at] - 1].key != key) at = (at + 1) & mask;
    return at;
  }
  Page& page_of(std::uint64_t key) {
    if (2 * (pages_.size() + 1) > slots_.size()) grow();
    std::uint32_t& number = slots_[slot_of(key)];
    if (number == 0) {
      pages_.emplace_back().key = key;
      number = static_cast<std::uint32_t>(pages_.size());
    }
    return pages_[number - 1];
  }
  void grow() {
    slots_.assign(slots_.empty() ? 8 : 2 * slots_.size(), 0);
    for (std::size_t i = 0; i < pages_.size(); ++i)
      slots_[slot_of(pages_[i].key)] = static_cast<std::uint32_t>(i + 1);
  }

  std::vector<Page> pages_;
  // Open addressing, power of two, at most half full: numbers of pages plus 1; 0: empty.
  std::vector<std::uint32_t> slots_;
};

/// A set of nodes.
struct NodeMark {};
using NodeSet = NodeTable<NodeMark>;

/// The nodes that `values` are computed from, each once, without those in `seen`, to which they are
/// added. `enters(value)` says whether to go on to the value's node and its operands; it is called
/// for each use of a value.
template <class Enters>
std::vector<const Node*> nodes_behind(std::span<const Value> values, const Enters& enters,
                                      NodeSet& seen) {
  std::vector<const Node*> found;
  std::vector<Value> waiting(values.begin(), values.end());
  while (!waiting.empty()) {
    Value value = std::move(waiting.back());
    waiting.pop_back();
    if (!enters(value) || !seen.insert(*value.node())) continue;
    found.push_back(value.node());
    waiting.insert(waiting.end(), value->operands().begin(), value->operands().end());
  }
  return found;
}
template <class Enters>
std::vector<const Node*> nodes_behind(std::span<const Value> values, const Enters& enters) {
  NodeSet seen;
  return nodes_behind(values, enters, seen);
}

}  // namespace meshard
