#include "meshard/graph/repeated_call.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

// A number, of which programs make an argument.
bool is_stored_number(const Value& value) {
  return &value->op() == &array_op && value.type().rank() == 0 && value.storage() &&
         !value.storage()->sharded_type();
}

}  // namespace

// Finds what a call recorded.
class RepeatedCall::Reader {
 public:
  Reader(std::span<const Value> arguments, std::uint64_t first) : first_(first) {
    call_.num_arguments_ = arguments.size();
    for (std::size_t i = 0; i < arguments.size(); ++i)
      known_.try_emplace({arguments[i].node(), arguments[i].index()},
                         static_cast<std::uint32_t>(i));
  }

  std::optional<RepeatedCall> read(std::span<const Value> results) {
    std::vector<Value> stack(results.begin(), results.end());
    while (!stack.empty()) {
      Value value = std::move(stack.back());
      stack.pop_back();
      if (knows(value) || nodes_.contains(value->id())) continue;
      if (value->annotations()) return std::nullopt;
      if (is_stored_number(value)) {
        numbers_.emplace(value->id(), value);
        continue;
      }
      if (value->id() < first_ || !is_recorded(*value.node())) return std::nullopt;
      nodes_.emplace(value->id(), value.node());
      for (const Value& operand : value->operands()) stack.push_back(operand);
    }
    add_numbers();
    add_steps();
    for (const Value& result : results) call_.results_.push_back(number_of(result));
    return std::move(call_);
  }

 private:
  using Key = std::pair<const Node*, std::uint32_t>;

  bool knows(const Value& value) const { return known_.contains({value.node(), value.index()}); }
  std::uint32_t number_of(const Value& value) const {
    return known_.at({value.node(), value.index()});
  }
  static bool is_recorded(const Node& node) {
    if (&node.op() == &parameter_op || node.trace() != 0) return false;
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i)
      if (node.storage(i)) return false;
    return true;
  }

  void add_numbers() {
    for (const auto& [id, value] : numbers_) {
      known_[{value.node(), 0}] =
          static_cast<std::uint32_t>(call_.num_arguments_ + call_.numbers_.size());
      call_.numbers_.push_back(value);
    }
  }
  // In order of recording: operands come before their users.
  void add_steps() {
    std::size_t next = call_.num_arguments_ + call_.numbers_.size();
    for (const auto& [id, node] : nodes_) {
      Step step{&node->op(), nullptr, {}, {}};
      if (node->attributes()) step.attributes = node->attributes()->clone();
      for (const Value& operand : node->operands()) step.operands.push_back(number_of(operand));
      for (std::uint32_t i = 0; i < node->num_outputs(); ++i) {
        step.results.push_back(node->type(i));
        known_[{node, i}] = static_cast<std::uint32_t>(next++);
      }
      call_.steps_.push_back(std::move(step));
    }
  }

  std::uint64_t first_;
  std::map<Key, std::uint32_t> known_;
  std::map<std::uint64_t, Value> numbers_;      // by id
  std::map<std::uint64_t, const Node*> nodes_;  // by id
  RepeatedCall call_;
};

std::optional<RepeatedCall> RepeatedCall::of(std::span<const Value> arguments,
                                             std::span<const Value> results, std::uint64_t first) {
  return Reader(arguments, first).read(results);
}

std::vector<Tensor> RepeatedCall::record(std::span<const Value> arguments,
                                         SourceLocation where) const {
  where = effective_source(where);
  InlineVector<Value, 32> values(arguments.begin(), arguments.end());
  // Each use of a number is an argument of its own, as when the function runs: the same program.
  for (const Value& number : numbers_)
    values.push_back(make_array(number.type(), StoragePtr(number.storage()), where).value());
  for (const Step& step : steps_) {
    InlineVector<Value, 4> operands;
    for (std::uint32_t number : step.operands) operands.push_back(values[number]);
    Value first = record_known(*step.op, step.attributes ? step.attributes->clone() : nullptr,
                               operands, step.results, where);
    for (std::uint32_t i = 0; i < step.results.size(); ++i)
      values.push_back(Value(first.node(), i));
  }
  std::vector<Tensor> results;
  results.reserve(results_.size());
  for (std::uint32_t number : results_) results.emplace_back(values[number]);
  return results;
}

}  // namespace meshard
