// Computes recorded tensors when somebody asks for them, and compiles traced programs.
#pragma once
#include <mutex>

#include "meshard/graph/evaluator.h"
#include "meshard/runtime/program_cache.h"

namespace meshard {

/// The Evaluator that the runtime installs. Evaluation is locked: recorded nodes are shared between
/// threads, and computing them changes them. Recording is not locked, nor are calls of compiled
/// programs.
class LazyEvaluator final : public Evaluator {
 public:
  void evaluate(std::span<const Value> values, SourceLocation where) override;
  Tensor place(const Value& value, const Sharding& sharding, SourceLocation where) override;
  std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation where) override;

 private:
  Tensor reshard(const Value& value, const Sharding& sharding, SourceLocation where);
  std::mutex mutex_;
  ProgramCache cache_;
};

/// The loaded program behind a compiled one, and the graph it was made from: for explain/.
struct ProgramView {
  const LoadedProgram& program;
  const Graph& graph;
};
ProgramView view_of(const CompiledProgram& program);

}  // namespace meshard
