// Computes recorded tensors when somebody asks for them, and compiles traced programs.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/pjrt/launch.h"
#include "meshard/runtime/program_cache.h"
#include "meshard/runtime/stages.h"

namespace meshard {

/// The Evaluator that the runtime installs. An evaluation runs one program for each set of devices
/// that its values belong to (stages.h). Recorded nodes are shared between threads: a node is
/// computed by one of them, and others that need it wait; evaluations without a common node compile
/// and run side by side. Recording is not locked, nor are calls of compiled programs.
class LazyEvaluator final : public Evaluator {
 public:
  void evaluate(std::span<const Value> values, SourceLocation where) override;
  Tensor place(const Value& value, const Sharding& sharding, SourceLocation where) override;
  std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation where) override;
  void wait() override;
  std::size_t count_pending(const Value& value) override;
  /// Looks at the evaluations whose launches are through: those that succeeded forget what their
  /// values were computed from; those that failed forget the values, which can be computed again.
  void settle();
  /// The same, after waiting for those under way if one has failed: what used its results failed
  /// with it.
  void settle_failed();

 private:
  // An evaluation whose launch was under way when it was last looked at.
  struct Unsettled {
    std::shared_ptr<const pjrt::Launch> launch;
    std::vector<Value> results;
  };
  // What failed is left for the next who asks, if its error is yet to be read.
  enum class Failed { kForget, kLeave };
  void settle_locked(Failed what);
  // What an evaluation computes; entered in running_ until it is done.
  class Claim;
  bool is_claimed(const Graph& graph) const;
  // Computes one stage; `entire` is the graph that consists of it alone, if it does.
  void run(const Stage& stage, const Graph* entire, SourceLocation where);

  ProgramCache cache_;
  std::mutex mutex_;                  // guards recorded nodes while they change, and running_
  std::condition_variable finished_;  // some evaluation is done
  std::uint64_t num_finished_ = 0;
  std::vector<const Graph*> running_;
  std::vector<Unsettled> unsettled_;
  std::atomic<bool> has_unsettled_{false};
  // What failed launches left: others may still look at it.
  std::vector<StoragePtr> failed_;
};

/// The loaded program behind a compiled one, and the graph it was made from: for explain/.
struct ProgramView {
  const LoadedProgram& program;
  const Graph& graph;
  /// What messages call the parameters; as many as there are, or none.
  const std::vector<std::string>& parameter_names;
  const std::vector<std::uint32_t>& donated;
};
ProgramView view_of(const CompiledProgram& program);

}  // namespace meshard
