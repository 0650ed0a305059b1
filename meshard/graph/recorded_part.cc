#include "meshard/graph/recorded_part.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/node_table.h"

namespace meshard {
namespace {

// Each device has its own value, which cannot be the result of a program.
bool is_local(const Node& node) { return node.annotations() && node.annotations()->manual; }

class Search {
 public:
  Search(const internal::RecordLog& log, std::uint64_t first) : alive_(log.alive_since(first)) {
    states_.resize(alive_.size());
    for (std::size_t i = 0; i < alive_.size(); ++i) *places_.try_emplace(node(i)).first = i;
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      State& state = states_[i];
      state.is_open = !alive_[i].second.storage() && !is_blocked(i);
      for (const Value& operand : node(i).operands())
        if (State* used = state_of(operand)) ++used->uses;
    }
    // From the last to the first: users come after their operands. This object has one reference.
    for (std::size_t i = alive_.size(); i-- > 0;) {
      State& state = states_[i];
      state.is_needed |= is_wanted(i);
      if (!state.is_needed) continue;
      for (const Value& operand : node(i).operands())
        if (State* used = state_of(operand)) used->is_needed |= used->is_open;
    }
  }

  RecordedPart until(std::uint64_t last) && {
    RecordedPart part;
    // Only a needed node that was recorded later is a user from outside.
    for (std::size_t i = alive_.size(); i-- > 0 && alive_[i].first >= last;) {
      if (!states_[i].is_needed) continue;
      for (const Value& operand : node(i).operands())
        if (State* used = state_of(operand)) --used->uses;
    }
    for (std::size_t i = 0; i < alive_.size() && alive_[i].first < last; ++i)
      if (is_wanted(i)) part.wanted.push_back(alive_[i].second);
    for (std::size_t i = 0; i < alive_.size() && alive_[i].first < last; ++i)
      if (states_[i].is_needed) part.nodes.push_back(std::move(alive_[i]));
    return part;
  }

 private:
  struct State {
    std::uint32_t uses = 0;  // as operands of nodes of the log
    bool is_open = false;    // it can be computed, and is not
    bool is_needed = false;
  };
  const Node& node(std::size_t i) const { return *alive_[i].second.node(); }
  State* state_of(const Value& operand) {
    const std::size_t* place = places_.find(*operand.node());
    return place ? &states_[*place] : nullptr;
  }
  bool is_wanted(std::size_t i) const {
    return states_[i].is_open && !is_local(node(i)) && node(i).references() > states_[i].uses + 1;
  }
  bool is_blocked(std::size_t i) {
    const Node& blocked = node(i);
    if (&blocked.op() == &parameter_op) return true;
    for (const Value& operand : blocked.operands()) {
      if (const Storage* storage = operand.storage()) {
        if (storage->kind() == Storage::Kind::kAbstract) return true;
        continue;
      }
      if (operand->trace() != 0 || &operand->op() == &parameter_op) return true;
      if (const State* state = state_of(operand); state && !state->is_open) return true;
    }
    return false;
  }

  std::vector<std::pair<std::uint64_t, Value>> alive_;
  std::vector<State> states_;
  NodeTable<std::size_t> places_;
};

}  // namespace

RecordedPart recorded_part(const internal::RecordLog& log, std::uint64_t first,
                           std::uint64_t last) {
  return Search(log, first).until(last);
}

}  // namespace meshard
