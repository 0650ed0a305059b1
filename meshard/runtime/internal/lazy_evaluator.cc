// Computes recorded tensors on demand, and compiles traced programs.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "meshard/base/stall_report.h"
#include "meshard/base/threads.h"
#include "meshard/graph/annotation.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/named_mesh.h"
#include "meshard/graph/record.h"
#include "meshard/graph/record_log.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/slicing.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/call_program.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/launched_results.h"
#include "meshard/runtime/internal/loop_runner.h"
#include "meshard/runtime/internal/placed_constants.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/read_whole.h"
#include "meshard/runtime/internal/repeated_compiles.h"
#include "meshard/runtime/internal/stages.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {
namespace {

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
  RepeatedCompiles repeated_compiles_;
};

void check_not_traced(const Value& value, SourceLocation where) {
  if (value->trace() != 0)
    throw Error(ErrorCode::kFailedPrecondition,
                "[tensor] a traced value cannot be computed: it is known only inside the jitted "
                "function. Return it from the function",
                where)
        .with_note(cat("it was recorded at ", value->where()));
}

// Counts how often the graph's nodes use each node.
std::vector<std::uint32_t> count_uses(const Graph& graph) {
  std::vector<std::uint32_t> uses(graph.num_leaves() + graph.nodes().size(), 0);
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands()) ++uses[graph.number(operand.node())];
  return uses;
}

// The requested results, and every intermediate node that something outside refers to: a handle, or
// a recorded node that is not computed now. This way nothing runs twice, except local values inside
// manual axes, which cannot be results.
std::vector<Value> results_to_keep(const Graph& graph) {
  std::vector<Value> results;
  std::vector<std::uint32_t> uses = count_uses(graph);
  std::vector<bool> asked(uses.size(), false);
  for (const Value& result : graph.results()) {
    std::uint32_t number = graph.number(result.node());
    if (asked[number]) continue;
    asked[number] = true;
    for (std::uint32_t i = 0; i < result->num_outputs(); ++i)
      results.emplace_back(result.node(), i);
  }
  for (const Node* node : graph.nodes()) {
    std::uint32_t number = graph.number(node);
    if (asked[number] || node->references() <= uses[number]) continue;
    if (node->annotations() && node->annotations()->manual) continue;
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
      results.emplace_back(const_cast<Node*>(node), i);
  }
  return results;
}

// A loaded program with its captured values. Compiled again after a restart of the runtime.
class JitProgram final : public CompiledProgram {
 public:
  JitProgram(Runtime& runtime, std::shared_ptr<const LoadedProgram> loaded, Program source)
      : CompiledProgram(std::move(source)), runtime_(runtime), program_(std::move(loaded)) {
    const Graph& graph = this->source().graph;
    for (const Value& value : graph.captured()) captured_.emplace_back(value);
    places_ = std::any_of(captured_.begin(), captured_.end(), is_placed) ||
              std::any_of(graph.nodes().begin(), graph.nodes().end(),
                          [](const Node* node) { return named_mesh(*node) != nullptr; });
  }

  void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
           SourceLocation where) override {
    std::shared_ptr<const LoadedProgram> again;
    const LoadedProgram* program = program_.get();
    if (!program->is_current()) [[unlikely]]
      program = (again = compiled_again(where)).get();
    const std::vector<std::string>& names = source().parameter_names;
    if (captured_.empty()) {
      (void)call_program(runtime_, *program, arguments, results, where, names);
    } else {
      InlineVector<const Tensor*, 256> all(arguments.begin(), arguments.end());
      for (const Tensor& tensor : captured_) all.push_back(&tensor);
      (void)call_program(runtime_, *program, std::span<const Tensor* const>(all.data(), all.size()),
                         results, where, names);
    }
    // Usually fast: the first argument of a training step is placed.
    if (places_ || !program_->lowered().mesh) return;
    for (const Tensor* argument : arguments)
      if (is_placed(*argument)) return;
    for (Tensor& result : results) result.value()->set_unplaced();
  }
  const Sharding* parameter_sharding(std::size_t i) const override {
    const auto& sharding = program_->shardings().arguments[i];
    return sharding ? &*sharding : nullptr;
  }
  const ShardedType* parameter_type(std::size_t i) const override {
    return &program_->argument_type(i);
  }
  const LoadedProgram* loaded() const override { return program_.get(); }

 private:
  static bool is_placed(const Tensor& tensor) { return !is_unplaced(tensor.value()); }

  // The program, compiled for the client that replaced its original one.
  std::shared_ptr<const LoadedProgram> compiled_again(SourceLocation where) {
    std::lock_guard lock(again_mutex_);
    if (!again_ || !again_->is_current()) again_ = runtime_.programs.get(source(), where);
    return again_;
  }

  Runtime& runtime_;
  std::shared_ptr<const LoadedProgram> program_;
  std::mutex again_mutex_;
  std::shared_ptr<const LoadedProgram> again_;  // guarded by again_mutex_
  std::vector<Tensor> captured_;
  bool places_ = false;  // its results are placed, whatever the arguments are
};

}  // namespace

// Claims the nodes of a graph for this thread, and releases them when the evaluation ends in any
// way.
class LazyEvaluator::Claim {
 public:
  /// @pre the evaluator's lock is held, and no node of the graph is claimed
  Claim(LazyEvaluator& evaluator, const Graph& graph) : evaluator_(evaluator), graph_(&graph) {
    evaluator_.running_.push_back(graph_);
  }
  ~Claim() {
    {
      std::lock_guard lock(evaluator_.mutex_);
      std::erase(evaluator_.running_, graph_);
      ++evaluator_.num_finished_;
    }
    evaluator_.finished_.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  LazyEvaluator& evaluator_;
  const Graph* graph_;
};

bool LazyEvaluator::is_claimed(const Graph& graph) const {
  for (const Graph* running : running_)
    for (const Node* node : graph.nodes())
      if (running->contains(node)) return true;
  return false;
}

LazyEvaluator::LazyEvaluator(Runtime& runtime)
    : runtime_(runtime),
      launched_(runtime.platforms.launched_results()),
      mutex_(launched_.mutex()) {}

void LazyEvaluator::wait() {
  runtime_.platforms.wait_for_launches();
  // Otherwise the results of the last evaluation, which nobody may hold any more, would keep their
  // memory until the next one.
  launched_.settle();
}

void LazyEvaluator::evaluate(std::span<const Value> values, SourceLocation where) {
  internal::NoRunAheadScope scope;
  if (!scope.is_inner() && !only_recording())
    with_loop_runner(
        [&](LoopRunner& loops) { loops.finish_periods(internal::record_log, *this, where); });
  compute(values, where);
}

template <class F>
void LazyEvaluator::with_loop_runner(const F& f) {
  auto& loops = internal::thread_instance<LoopRunner>();
  try {
    f(loops);
  } catch (const Error&) {
    loops.fail(internal::record_log);
    // The other processes have seen it too, or wait for this one.
    const Fabric* fabric = runtime_.platforms.default_fabric();
    if (fabric && fabric->exchange() == RouteOptions::Exchange::kPieces) throw;
  }
}

void LazyEvaluator::run_ahead(internal::RecordLog& log, SourceLocation where) {
  with_loop_runner([&](LoopRunner& loops) { loops.check(log, *this, where); });
}

RecordedPart LazyEvaluator::part(std::uint64_t first, std::uint64_t last) {
  std::lock_guard lock(mutex_);
  return recorded_part(internal::record_log, first, last);
}

bool LazyEvaluator::is_claimed(const Node& node) const {
  return std::any_of(running_.begin(), running_.end(),
                     [&](const Graph* graph) { return graph->contains(&node); });
}

void LazyEvaluator::set_computed(const Value& value, StoragePtr storage, bool is_unplaced) {
  std::lock_guard lock(mutex_);
  if (value.storage() || is_claimed(*value.node())) return;
  if (is_unplaced) value->set_unplaced();
  value.node()->set_storage(0, std::move(storage));
}

void LazyEvaluator::make_arguments(std::span<const Value> values, SourceLocation where) {
  std::vector<Value> slices, computed;
  for (const Value& value : values) {
    if (&value->op() == &constant_op) {
      set_computed(value,
                   make_storage<HostStorage>(value->attributes_as<ConstantAttributes>().value),
                   /*is_unplaced=*/false);
      continue;
    }
    Tensor operand(value->operands()[0]);
    const Dimensions& first = value->attributes_as<SliceAttributes>().start;
    const Shape& shape = value.type().shape;
    // The starts are arguments: slices with constant ones would each be a program.
    std::vector<Tensor> starts;
    for (int d = 0; d < shape.rank(); ++d) {
      HostArray start = HostArray::scalar(first[static_cast<std::size_t>(d)]);
      starts.push_back(shape[d] == operand.shape()[d] ? constant(start, value->where())
                                                      : from_host(start, value->where()));
    }
    slices.push_back(value);
    computed.push_back(
        dynamic_slice({operand, value->where()}, {starts.begin(), starts.end()}, shape.sizes())
            .value());
  }
  if (slices.empty()) return;
  compute(computed, where);
  for (std::size_t i = 0; i < slices.size(); ++i)
    set_computed(slices[i], StoragePtr(&computed_storage(computed[i], where)),
                 computed[i]->is_unplaced());
}

void LazyEvaluator::run(std::span<const Value> values, SourceLocation where) {
  compute(values, where);
}

void LazyEvaluator::compute(std::span<const Value> values, SourceLocation where) {
  runtime_.platforms.know_default(where);
  std::unique_lock lock(mutex_);
  launched_.settle_locked(LaunchedResults::Failed::kForget);
  Program program;
  program.name = "lazy";
  do {
    std::vector<Value> pending;
    for (const Value& value : values) {
      if (value.storage()) continue;
      check_not_traced(value, where);
      pending.push_back(value);
    }
    if (pending.empty()) return;
    try {
      program.graph = Graph::build({}, pending, 0);
    } catch (const Error& error) {
      throw error.with_note(cat("a value read at ", where, " needs it"));
    }
    for (const Value& leaf : program.graph.captured()) check_not_traced(leaf, where);
    if (!is_claimed(program.graph)) break;
    internal::WaitPlace place(where);
    internal::wait_or_report(
        finished_, lock, [&, before = num_finished_] { return num_finished_ != before; },
        [] { return "an evaluation of the same values in another thread"; });
  } while (true);
  Graph entire = program.graph.with_results(results_to_keep(program.graph));
  std::vector<Stage> stages = split_by_devices(entire);
  // When a stage is done, its nodes forget their operands. Keep them alive, so that nodes that a
  // later stage records do not reuse the addresses of claimed nodes: this thread would wait for
  // itself.
  std::vector<Value> held;
  if (stages.size() > 1)
    for (const Node* node : entire.nodes()) held.emplace_back(const_cast<Node*>(node));
  Claim claim(*this, entire);
  lock.unlock();
  for (const Stage& stage : stages) run(stage, stages.size() == 1 ? &entire : nullptr, where);
}

// @pre the node of each result has all of its operands, and no storage yet
void LazyEvaluator::run(const Stage& stage, const Graph* entire, SourceLocation where) {
  if (std::optional<std::vector<StoragePtr>> placed = placed_constants(runtime_, stage, where)) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < placed->size(); ++i) {
      set_result(stage, i, std::move((*placed)[i]));
      if (!stage.results[i]->keeps_operands()) stage.results[i].node()->forget_operands();
    }
    return;
  }
  Program program;
  program.name = "lazy";
  program.graph = entire ? entire->with_results(stage.results) : Graph::build({}, stage.results, 0);
  if (stage.mesh) program.graph = on_devices_of(runtime_, program.graph, *stage.mesh, where);
  const std::uint64_t compiles = internal::counters().compiles.load(std::memory_order_relaxed);
  std::shared_ptr<const LoadedProgram> loaded = runtime_.programs.get(program, where);
  if (internal::counters().compiles.load(std::memory_order_relaxed) != compiles)
    repeated_compiles_.note(loaded.get(), program.graph, where);
  std::vector<Tensor> captured, computed(stage.results.size());
  for (const Value& leaf : program.graph.captured()) captured.emplace_back(leaf);
  std::vector<const Tensor*> arguments;
  for (const Tensor& tensor : captured) arguments.push_back(&tensor);
  pjrt::Launch launch = call_program(runtime_, *loaded, arguments, computed, where, /*names=*/{},
                                     /*track=*/true);
  internal::count(internal::counters().nodes_run, program.graph.nodes().size());

  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < computed.size(); ++i)
    set_result(stage, i, StoragePtr(computed[i].value().storage()));
  launched_.add_locked(std::move(launch), stage.results);
}

void LazyEvaluator::set_result(const Stage& stage, std::size_t i, StoragePtr storage) {
  const Value& result = stage.results[i];
  if (stage.unplaced[i]) result.node()->set_unplaced();
  result.node()->set_storage(result.index(), std::move(storage));
}

Tensor LazyEvaluator::place(const Value& value, const Sharding& sharding, SourceLocation where) {
  internal::NoRunAheadScope scope;
  runtime_.platforms.know_default(where);
  return place_value(runtime_, value, sharding, where);
}

std::shared_ptr<CompiledProgram> LazyEvaluator::compile(Program program, SourceLocation where) {
  runtime_.platforms.know_default(where);
  std::vector<Value> pending;
  for (const Value& value : program.graph.captured())
    if (!value.storage()) pending.push_back(value);
  if (!pending.empty()) evaluate(pending, where);
  internal::NoRunAheadScope scope;
  if (!program.unsharded)
    if (std::optional<Mesh> mesh = devices_of_program(program.graph, where))
      program.graph = on_devices_of(runtime_, program.graph, *mesh, where);
  std::shared_ptr<const LoadedProgram> loaded = runtime_.programs.get(program, where);
  return std::make_shared<JitProgram>(runtime_, std::move(loaded), std::move(program));
}

std::size_t LazyEvaluator::count_pending(const Value& value) {
  std::lock_guard lock(mutex_);
  return Evaluator::count_pending(value);
}

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
