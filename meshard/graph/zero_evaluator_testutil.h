// An evaluator for tests that count evaluations.
#pragma once
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"

namespace meshard::test {

/// Sets every requested value to zeros, and counts the calls.
struct ZeroEvaluator : Evaluator {
  void evaluate(std::span<const Value> values, SourceLocation) override {
    ++calls;
    for (const Value& value : values)
      value.node()->set_storage(value.index(),
                                make_storage<HostStorage>(HostArray::zeros(value.type())));
  }
  Tensor place(const Value& value, const Sharding&, SourceLocation) override {
    return Tensor(value);
  }
  std::shared_ptr<CompiledProgram> compile(Program, SourceLocation) override { return nullptr; }
  int calls = 0;
};

}  // namespace meshard::test
