#include "meshard/lowering/internal/shared_values.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

// Beyond this, how many arrays there are does not matter.
constexpr std::size_t kMostCounted = 16;

// True if XLA fuses the node into its users. It computes cheap values again for each user, and
// functions such as exp for a single one: the result of one that has several users is in memory.
bool is_fused_into_users(const Node& node, std::uint32_t users) {
  Recomputation cost = node.op().traits.recomputation;
  if (cost == Recomputation::kFunction) return users == 1;
  return cost == Recomputation::kFree || cost == Recomputation::kArithmetic;
}

// Division by one changes no number of these types.
bool can_be_kept(DType dtype) { return is_floating(dtype) && !is_float8(dtype); }

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph), users_(count(graph)) {
    arrays_.resize(users_.size());
  }

  std::unordered_set<const Node*> run() {
    std::unordered_set<const Node*> shared;
    for (const Node* node : graph_.nodes()) {
      std::uint32_t number = graph_.number(node);
      Arrays& arrays = arrays_[number];
      const Users& users = users_[number];
      if (node->num_outputs() != 1 || !is_fused_into_users(*node, users.total())) {
        arrays = {itself(*node)};
        continue;
      }
      std::int64_t least = node->type(0).size() / 2;
      for (const Value& operand : node->operands()) add(operand, least, arrays);
      if (users.total() < 2 || !can_be_kept(node->type(0).dtype) ||
          arrays.size() <= kMostArraysOfShared)
        continue;
      shared.insert(node);
      arrays = {itself(*node)};
    }
    return shared;
  }

 private:
  struct Array {
    std::uint32_t number = 0;
    std::int64_t elements = 0;
    bool operator==(const Array&) const = default;
  };
  using Arrays = std::vector<Array>;
  struct Users {
    std::uint32_t fused = 0;  // each computes the value again
    bool others = false;      // all read it from memory
    std::uint32_t total() const { return fused + (others ? 1 : 0); }
  };

  Array itself(const Node& node) const { return {graph_.number(&node), node.type(0).size()}; }

  // Adds the arrays of `operand` that have at least `least` elements.
  void add(const Value& operand, std::int64_t least, Arrays& to) const {
    auto add_one = [&](const Array& array) {
      if (array.elements >= least && to.size() < kMostCounted &&
          std::ranges::find(to, array) == to.end())
        to.push_back(array);
    };
    std::uint32_t number = graph_.number(operand.node());
    if (number < graph_.num_leaves())
      add_one({number + operand.index(), operand.type().size()});
    else
      std::ranges::for_each(arrays_[number], add_one);
  }

  static std::vector<Users> count(const Graph& graph) {
    std::vector<Users> users(graph.num_leaves() + graph.nodes().size());
    for (const Node* node : graph.nodes()) {
      bool is_fused = node->op().traits.recomputation != Recomputation::kNever;
      for (std::size_t i = 0; i < node->operands().size(); ++i) {
        const Value& operand = node->operands()[i];
        // Of x * x, once.
        auto before = node->operands().subspan(0, i);
        if (std::ranges::find(before, operand) != before.end()) continue;
        Users& of = users[graph.number(operand.node())];
        is_fused ? ++of.fused : of.others = true;
      }
    }
    for (const Value& result : graph.results()) users[graph.number(result.node())].others = true;
    return users;
  }

  const Graph& graph_;
  std::vector<Users> users_;    // by node
  std::vector<Arrays> arrays_;  // by node, in memory, that its fusion reads
};

}  // namespace

std::unordered_set<const Node*> shared_values(const Graph& graph) { return Search(graph).run(); }

}  // namespace meshard
