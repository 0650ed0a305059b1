#include "meshard/graph/effects.h"

#include <typeinfo>
#include <utility>

#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard::internal {
namespace {

constinit thread_local EffectScope* innermost = nullptr;

// A node that this trace recorded, not a leaf.
bool is_recorded_here(const Tensor& tensor, std::uint64_t trace) {
  const Value& value = tensor.value();
  return !value.storage() && value->trace() == trace && !value->operands().empty();
}

bool is_mark(const Node& node) {
  return node.attributes() && node.attributes()->type() == typeid(ShardingMark);
}

}  // namespace

EffectScope::EffectScope() : trace_(recorder().trace), outer_(std::exchange(innermost, this)) {}
EffectScope::~EffectScope() { innermost = outer_; }

EffectScope* EffectScope::current() {
  for (EffectScope* scope = innermost; scope; scope = scope->outer_)
    if (scope->trace_ == recorder().trace) return scope;
  return nullptr;
}

void EffectScope::add(Attach effect, SourceLocation where) {
  effects_.push_back({std::move(effect), where});
}

Tensor EffectScope::attached(Tensor result) const {
  for (const Effect& effect : effects_) {
    InheritSource line(effect.where);
    result = effect.attach(result);
  }
  return result;
}

void EffectScope::attach(std::vector<Tensor>& results) {
  if (effects_.empty()) return;
  Tensor* chosen = nullptr;
  for (Tensor& result : results) {
    if (!result.defined()) continue;
    if (!chosen) chosen = &result;
    // A parameter that is returned keeps its sharding and its memory only if it stays as it is.
    if (is_recorded_here(result, trace_)) {
      chosen = &result;
      break;
    }
  }
  if (!chosen)
    throw_invalid(effects_.front().where,
                  "[debug_print] the function that calls this returns no tensor, so nothing would "
                  "run: return a tensor that it computes");
  const Node& node = *chosen->value().node();
  if (is_recorded_here(*chosen, trace_) && is_mark(node)) {
    // The mark stays the last op: it determines the sharding of the program's result.
    Tensor marked = attached(Tensor(node.operands()[0]));
    *chosen = record(node.op(), node.attributes()->clone(), {&marked}, node.where());
  } else {
    *chosen = attached(*chosen);
  }
  effects_.clear();
}

}  // namespace meshard::internal
