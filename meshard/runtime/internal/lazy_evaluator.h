// Computes recorded tensors on demand, and compiles traced programs.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/runtime/internal/launched_results.h"
#include "meshard/runtime/internal/loop_runner.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/read_whole.h"
#include "meshard/runtime/internal/stages.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// The Evaluator that the runtime installs. An evaluation runs one program for each set of devices
/// that its values belong to (stages.h). Threads share recorded nodes: one thread computes a node,
/// and others that need it wait. Evaluations without a common node compile and run concurrently.
/// Recording and calls of compiled programs take no lock. Long programs run in parts while they are
/// recorded (loop_runner.h).
class LazyEvaluator final : public Evaluator, private PartEvaluator {
 public:
  /// @pre `runtime` and the evaluator outlive all tensors
  explicit LazyEvaluator(Runtime& runtime);
  void evaluate(std::span<const Value> values, SourceLocation where) override;
  Tensor place(const Value& value, const Sharding& sharding, SourceLocation where) override;
  std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation where) override;
  HostArray read(const Storage& storage, SourceLocation where) override {
    return read_whole(runtime_, storage, where);
  }
  void wait() override;
  std::size_t count_pending(const Value& value) override;
  void run_ahead(internal::RecordLog& log, SourceLocation where) override;

 private:
  RecordedPart part(std::uint64_t first, std::uint64_t last) override;
  void make_arguments(std::span<const Value> values, SourceLocation where) override;
  // Gives a recorded value that no thread computes this storage.
  void set_computed(const Value& value, StoragePtr storage, bool is_unplaced);
  void run(std::span<const Value> values, SourceLocation where) override;
  // As evaluate(), without what was recorded besides.
  void compute(std::span<const Value> values, SourceLocation where);
  // Calls a function of this thread's loop runner. If it fails, the values that it should have
  // computed stay recorded, so that the error comes where they are read.
  template <class F>
  void with_loop_runner(const F& f);
  // The nodes that an evaluation computes; listed in running_ until it is done.
  class Claim;
  bool is_claimed(const Graph& graph) const;
  bool is_claimed(const Node& node) const;
  // Computes one stage. `entire` is the whole graph if it has only this stage, otherwise null.
  void run(const Stage& stage, const Graph* entire, SourceLocation where);
  // Stores result i of a stage. @pre mutex_ is held
  static void set_result(const Stage& stage, std::size_t i, StoragePtr storage);

  Runtime& runtime_;
  LaunchedResults& launched_;
  std::mutex& mutex_;                 // guards changes of recorded nodes, and running_
  std::condition_variable finished_;  // an evaluation is done
  std::uint64_t num_finished_ = 0;
  std::vector<const Graph*> running_;
};

}  // namespace meshard
