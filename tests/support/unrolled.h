// Unrolls loops and branches of a program for the interpreter, which does not support them: records
// the program again, with each body as often as it runs.
#pragma once
#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/composite/index.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/definition/attributes.h"
#include "tests/support/interpreter.h"

namespace meshard {

class Unrolled {
 public:
  /// Uses `tensor` in place of `value`, a parameter of a trace.
  void set(const Tensor& value, const Tensor& tensor) { done_[key(value.value())] = tensor; }

  /// The same value, without loops and branches.
  Tensor run(const Tensor& tensor) {
    const Value& value = tensor.value();
    if (value.storage() || value->operands().empty()) {
      auto found = done_.find(key(value));
      return found == done_.end() ? tensor : found->second;
    }
    if (auto found = done_.find(key(value)); found != done_.end()) return found->second;
    std::vector<Tensor> operands;
    for (const Value& operand : value->operands()) operands.push_back(run(Tensor(operand)));
    std::vector<Tensor> results = recorded(*value.node(), operands);
    for (std::uint32_t i = 0; i < results.size(); ++i)
      done_[key(Value(value.node(), i))] = results[i];
    kept_.push_back(tensor);
    return results[value.index()];
  }

 private:
  using Key = std::pair<const Node*, std::uint32_t>;
  static Key key(const Value& value) { return {value.node(), value.index()}; }

  std::vector<Tensor> in_place(const Body& body, std::span<const Tensor> arguments) {
    std::vector<Tensor> results;
    for (const Tensor& result : inlined(body, arguments)) results.push_back(run(result));
    return results;
  }

  std::vector<Tensor> recorded(const Node& node, const std::vector<Tensor>& operands) {
    std::string_view name = node.op().name;
    if (name == "scan") return scanned(node.attributes_as<ScanAttributes>(), operands);
    if (name == "switch_case") return chosen(node.attributes_as<SwitchAttributes>(), operands);
    if (name == "while_loop") return looped(node.attributes_as<WhileAttributes>(), operands);
    if (name == "checkpoint")
      return in_place(node.attributes_as<CheckpointAttributes>().bodies[0], operands);
    std::vector<const Tensor*> pointers;
    for (const Tensor& operand : operands) pointers.push_back(&operand);
    Tensor first = record(node.op(), node.attributes() ? node.attributes()->clone() : nullptr,
                          std::span<const Tensor* const>(pointers), node.where());
    std::vector<Tensor> results;
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i)
      results.emplace_back(Value(first.value().node(), i));
    return results;
  }

  std::vector<Tensor> scanned(const ScanAttributes& scan, const std::vector<Tensor>& operands) {
    auto carries = static_cast<std::size_t>(scan.num_carries);
    auto sliced = static_cast<std::size_t>(scan.num_sliced);
    std::vector<Tensor> now = operands;
    std::vector<std::vector<Tensor>> stacks(scan.bodies[0].num_results() - carries);
    for (std::int64_t step = 0; step < scan.length; ++step) {
      std::int64_t at = scan.reverse ? scan.length - 1 - step : step;
      for (std::size_t i = carries; i < carries + sliced; ++i) now[i] = index(operands[i], {at});
      std::vector<Tensor> results = in_place(scan.bodies[0], now);
      std::copy_n(results.begin(), carries, now.begin());
      for (std::size_t i = 0; i < stacks.size(); ++i)
        stacks[i].insert(scan.reverse ? stacks[i].begin() : stacks[i].end(), results[carries + i]);
    }
    std::vector<Tensor> results(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(carries));
    for (const std::vector<Tensor>& each : stacks) results.push_back(stack(each));
    return results;
  }

  std::vector<Tensor> chosen(const SwitchAttributes& branches,
                             const std::vector<Tensor>& operands) {
    auto last = std::ssize(branches.bodies) - 1;
    std::int64_t which = std::clamp<std::int64_t>(interpret(operands[0]).item<int>(), 0, last);
    auto shared = static_cast<std::ptrdiff_t>(branches.num_arguments);
    std::vector<Tensor> given(operands.begin() + 1, operands.begin() + 1 + shared);
    auto own = operands.begin() + 1 + shared;
    for (std::int64_t b = 0;; ++b) {
      const Body& body = branches.bodies[static_cast<std::size_t>(b)];
      auto end = own + static_cast<std::ptrdiff_t>(body.num_parameters()) - shared;
      if (b == which) {
        given.insert(given.end(), own, end);
        return in_place(body, given);
      }
      own = end;
    }
  }

  std::vector<Tensor> looped(const WhileAttributes& loop, const std::vector<Tensor>& operands) {
    auto carries = static_cast<std::ptrdiff_t>(loop.num_carries);
    auto own = operands.begin() + static_cast<std::ptrdiff_t>(loop.bodies[0].num_parameters());
    std::vector<Tensor> test(operands.begin(), own),
        step(operands.begin(), operands.begin() + carries);
    step.insert(step.end(), own, operands.end());
    while (interpret(in_place(loop.bodies[0], test)[0]).item<bool>()) {
      std::vector<Tensor> next = in_place(loop.bodies[1], step);
      std::copy(next.begin(), next.end(), test.begin());
      std::copy(next.begin(), next.end(), step.begin());
    }
    return {step.begin(), step.begin() + carries};
  }

  std::map<Key, Tensor> done_;
  std::vector<Tensor> kept_;  // keeps nodes alive, so that no key is reused
};

}  // namespace meshard
