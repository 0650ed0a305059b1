// Tested in meshard/trace/jit_test.cc.
#include "meshard/trace/jit_call.h"

#include <functional>

#include "meshard/base/cat.h"
#include "meshard/graph/record.h"
#include "meshard/trace/internal/jit_cache.h"

namespace meshard::internal {
namespace {

void compute_pending(const JitCall& call, SourceLocation where) {
  InlineVector<Value, 4> pending;
  for (const Tensor* tensor : call.tensors)
    if (!tensor->value().storage()) pending.push_back(tensor->value());
  if (!pending.empty())
    evaluator(where).evaluate(std::span<const Value>(pending.data(), pending.size()), where);
}

}  // namespace

std::size_t JitCall::hash() const {
  std::size_t result = std::hash<const void*>()(types);
  auto add = [&](std::size_t part) {
    result ^= part + 0x9e3779b97f4a7c15u + (result << 6) + (result >> 2);  // as boost::hash_combine
  };
  for (std::uint64_t part : form) add(part);
  for (const Tensor* tensor : tensors) {
    const TensorType& type = tensor->value().type();
    add(static_cast<std::size_t>(type.dtype));
    for (std::int64_t extent : type.shape) add(static_cast<std::size_t>(extent));
  }
  for (const StaticValue& each : statics) add(each.kind->hash(each.value));
  return result;
}

JitPrograms::JitPrograms(JitOptions options, SourceLocation where)
    : cache_(std::make_shared<JitCache>(std::move(options), where)) {}

JitResults JitPrograms::run(const JitCall& call, const JitFunction& function) const {
  compute_pending(call, cache_->where());
  std::shared_ptr<const JitEntry> entry = cache_->find(call);
  if (entry && recorder().forbidden) [[unlikely]]
    cache_->record_again(call, function);
  if (!entry) entry = cache_->find_or_trace(call, function);

  const JitEntry& found = *entry;
  const void* prototype = found.prototype.get();
  JitResults results{std::shared_ptr<const void>(std::move(entry), prototype),
                     InlineVector<Tensor, 256>(found.num_results)};
  found.program->run(std::span<const Tensor* const>(call.tensors.data(), call.tensors.size()),
                     std::span<Tensor>(results.tensors.data(), results.tensors.size()),
                     cache_->where());
  return results;
}

JitStats JitPrograms::stats() const { return cache_->stats(); }

std::vector<std::shared_ptr<CompiledProgram>> JitPrograms::programs() const {
  return cache_->programs();
}

SourceLocation JitPrograms::where() const { return cache_->where(); }

const JitOptions& JitPrograms::options() const { return cache_->options(); }

bool recorded_in_place() { return only_recording() || recorder().manual != nullptr; }

void fail_undefined_argument(const std::string& path, SourceLocation where) {
  throw_invalid(where, "[jit] ", path,
                " of a call of the function jitted here has no value: it was default-constructed "
                "or moved from");
}

}  // namespace meshard::internal
