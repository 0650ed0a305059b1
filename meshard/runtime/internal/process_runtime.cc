// Tested in meshard/runtime/runtime_test.cc.
#include "meshard/runtime/internal/process_runtime.h"

#include "meshard/runtime/internal/lazy_evaluator.h"

namespace meshard {

Runtime& process_runtime() {
  static Runtime* runtime = new Runtime;
  return *runtime;
}

bool install_runtime() {
  install_evaluator([]() -> Evaluator& {
    static auto* evaluator = new LazyEvaluator(process_runtime());
    return *evaluator;
  });
  return true;
}

}  // namespace meshard
