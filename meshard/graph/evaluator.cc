#include "meshard/graph/evaluator.h"

#include <atomic>

#include "meshard/graph/record_log.h"
#include "meshard/graph/storage.h"

namespace meshard {
namespace {
std::atomic<EvaluatorFactory> installed{nullptr};
}

void install_evaluator(EvaluatorFactory factory) { installed.store(factory); }

Evaluator& evaluator(SourceLocation where) {
  EvaluatorFactory factory = installed.load(std::memory_order_acquire);
  if (!factory)
    throw Error(ErrorCode::kFailedPrecondition,
                "[graph] no runtime is installed: include <meshard/meshard.h>, or call "
                "install_runtime() first",
                where);
  return factory();
}

Evaluator* installed_evaluator() {
  EvaluatorFactory factory = installed.load(std::memory_order_acquire);
  return factory ? &factory() : nullptr;
}

HostArray Evaluator::read(const Storage& storage, SourceLocation where) {
  return storage.to_host(where);
}

std::size_t Evaluator::count_pending(const Value& value) {
  return value.storage() ? 0 : Graph::build({}, {&value, 1}, 0).nodes().size();
}

void Evaluator::run_ahead(internal::RecordLog& log, SourceLocation) {
  log.check_at(log.count() + internal::RecordLog::kFirstCheck);
}

Storage& computed_storage(const Value& value, SourceLocation where) {
  if (Storage* storage = value.storage()) [[likely]]
    return *storage;
  throw Error(ErrorCode::kFailedPrecondition,
              cat("[tensor] the launch that computes ", value.type(),
                  " failed, and another thread received the error; read the value again to retry"),
              where)
      .with_note(cat("it was recorded at ", value->where()));
}

void compute(std::span<const Tensor> tensors, SourceLocation where) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) {
    (void)tensor.type(where);
    if (!tensor.value().storage()) values.push_back(tensor.value());
  }
  if (!values.empty()) evaluator(where).evaluate(values, where);
}

void compute(std::initializer_list<Tensor> tensors, SourceLocation where) {
  compute(std::span(tensors.begin(), tensors.size()), where);
}

}  // namespace meshard
