#include "meshard/graph/evaluator.h"

#include <atomic>

namespace meshard {
namespace {
std::atomic<EvaluatorFactory> installed{nullptr};
}

void install_evaluator(EvaluatorFactory factory) { installed.store(factory); }

Evaluator& evaluator(SourceLocation where) {
  EvaluatorFactory factory = installed.load(std::memory_order_acquire);
  if (!factory)
    throw Error(ErrorCode::kFailedPrecondition,
                "[graph] nothing here can run programs: include <meshard/meshard.h>, or call "
                "install_runtime() first",
                where);
  return factory();
}

void sync(std::span<const Tensor> tensors, SourceLocation where) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) {
    (void)tensor.type(where);
    if (!tensor.value().storage()) values.push_back(tensor.value());
  }
  if (!values.empty()) evaluator(where).evaluate(values, where);
}

void sync(std::initializer_list<Tensor> tensors, SourceLocation where) {
  sync(std::span(tensors.begin(), tensors.size()), where);
}

}  // namespace meshard
