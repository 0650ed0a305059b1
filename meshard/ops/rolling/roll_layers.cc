#include "meshard/ops/rolling/roll_layers.h"

#include <algorithm>

#include "meshard/graph/body.h"
#include "meshard/graph/effects.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/rolling/equal_layers.h"

namespace meshard::internal {
namespace {

std::size_t count_effects() {
  const EffectScope* scope = EffectScope::current();
  return scope ? scope->size() : 0;
}

// The last value of each carry.
std::vector<Tensor> record_loop(const EqualLayers& layers, std::uint64_t trace) {
  InheritSource line(layers.where);
  ScanCall call{{}, {}, layers.count, layers.reverse};
  for (const EqualLayers::Carry& carry : layers.carries)
    call.carries.push_back(carry.initial ? Tensor(carry.initial)
                                         : zero_cotangent(Tensor(carry.from_second)));
  for (const EqualLayers::Stack& stack : layers.stacks) call.sliced.emplace_back(stack.stacked);
  for (const EqualLayers::Varying& varying : layers.varying) {
    std::vector<Tensor> all(varying.by_layer.begin(), varying.by_layer.end());
    call.sliced.push_back(stack(all, 0, layers.where));
  }
  auto body = [&](std::span<const Tensor> given) {
    Replay replay(trace);
    replay.run(layers.closed);  // constants become part of the body
    for (const Value& value : layers.invariant) replay.set(value, Tensor(value));
    std::vector<Value> wanted;
    std::size_t next = 0;
    for (const EqualLayers::Carry& carry : layers.carries) {
      if (carry.from_first) replay.set(carry.from_first, given[next]);
      ++next;
      wanted.push_back(carry.from_second);
    }
    for (const EqualLayers::Stack& stack : layers.stacks) {
      for (const Value& slice : stack.slices) replay.set(slice, given[next]);
      ++next;
    }
    for (const EqualLayers::Varying& varying : layers.varying)
      replay.set(varying.in_body, given[next++]);
    return replay.run(wanted);
  };
  return scan_tensors(call, body, layers.where);
}

std::vector<Tensor> with_loop(const std::vector<Tensor>& results, const EqualLayers& layers,
                              std::uint64_t trace) {
  std::vector<Tensor> finals = record_loop(layers, trace);
  Replay replay(trace);
  for (std::size_t i = 0; i < finals.size(); ++i)
    if (layers.carries[i].from_last) replay.set(layers.carries[i].from_last, finals[i]);
  // Everything else that is used after the layers was recorded before them, or apart from them.
  std::vector<const Node*> after = layers.after;
  std::sort(after.begin(), after.end());
  auto keep = [&](const Value& value) {
    bool is_after = std::binary_search(after.begin(), after.end(), value.node());
    if (!is_after && !replay.knows(value)) replay.set(value, Tensor(value));
  };
  for (const Node* node : layers.after)
    for (const Value& operand : node->operands()) keep(operand);
  std::vector<Value> wanted;
  for (const Tensor& result : results)
    if (result.defined()) keep(wanted.emplace_back(result.value()));
  std::vector<Tensor> now = replay.run(wanted);
  std::vector<Tensor> out = results;
  auto next = now.begin();
  for (Tensor& each : out)
    if (each.defined()) each = *next++;
  return out;
}

}  // namespace

RollingScope::RollingScope()
    : slices_(layer_slices_recorded()), first_node_(Node::next_id()), effects_(count_effects()) {}

std::vector<Tensor> RollingScope::rolled(std::vector<Tensor> results) const {
  if (layer_slices_recorded() == slices_) return results;
  std::uint64_t trace = recorder().trace;
  for (;;) {
    std::vector<Value> values;
    for (const Tensor& result : results)
      values.push_back(result.defined() ? result.value() : Value());
    LayerSearch search = find_equal_layers(values, trace, first_node_);
    // Effects, such as debug_print(), need the values of the layers as they were recorded.
    if (search.found && count_effects() != effects_) {
      search.unrolled.push_back(
          {search.found->count, "they print, or call the host", search.found->where});
      search.found.reset();
    }
    if (search.found) {
      results = with_loop(results, *search.found, trace);
      continue;
    }
    for (const UnrolledLayers& layers : search.unrolled) UnrolledLayersScope::add(layers);
    return results;
  }
}

}  // namespace meshard::internal
