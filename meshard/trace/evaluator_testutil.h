// An evaluator without a compiler: it records the programs that it receives and returns zeros, so
// that jit can be tested without a plugin.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"

namespace meshard::test {

class RecordingEvaluator final : public Evaluator {
 public:
  /// Installs the evaluator in its initial state; called by each test.
  static RecordingEvaluator& install() {
    static RecordingEvaluator evaluator;
    evaluator.programs.clear();
    evaluator.evaluated = evaluator.runs = 0;
    evaluator.last_arguments.clear();
    evaluator.chosen.reset();
    install_evaluator([]() -> Evaluator& { return evaluator; });
    return evaluator;
  }

  void evaluate(std::span<const Value> values, SourceLocation) override {
    for (const Value& value : values) {
      ++evaluated;
      if (!value.storage()) value.node()->set_storage(value.index(), zeros_of(value.type()));
    }
  }
  Tensor place(const Value& value, const Sharding&, SourceLocation) override {
    return Tensor(value);
  }
  std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation) override {
    programs.push_back(program);
    return std::make_shared<Compiled>(*this, std::move(program));
  }
  std::string text(std::size_t i) const { return to_string(programs.at(i).graph); }

  std::vector<Program> programs;
  std::mutex mutex;
  std::size_t evaluated = 0, runs = 0;
  /// The arguments of the last run.
  std::vector<Value> last_arguments;
  /// The sharding that is reported as the compiler's choice for every parameter.
  std::optional<Sharding> chosen;

 private:
  static StoragePtr zeros_of(const TensorType& type) {
    return make_storage<HostStorage>(HostArray::zeros(type));
  }

  // Results that are parameters are returned as the arguments; all others are zeros.
  struct Compiled final : CompiledProgram {
    Compiled(RecordingEvaluator& o, Program p)
        : CompiledProgram(std::move(p)), owner(o), chosen(o.chosen) {}
    void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
             SourceLocation where) override {
      // jit may be called from several threads, and the runs share this state.
      std::lock_guard lock(owner.mutex);
      ++owner.runs;
      owner.last_arguments.clear();
      for (const Tensor* argument : arguments) owner.last_arguments.push_back(argument->value());
      for (std::size_t i = 0; i < results.size(); ++i) {
        const Value& result = source().graph.results()[i];
        std::uint32_t number = source().graph.number(result.node());
        results[i] = number < arguments.size()
                         ? *arguments[number]
                         : make_array(result.type(), zeros_of(result.type()), where);
      }
    }
    const Sharding* parameter_sharding(std::size_t) const override {
      return chosen ? &*chosen : nullptr;
    }
    RecordingEvaluator& owner;
    std::optional<Sharding> chosen;
  };
};

}  // namespace meshard::test
