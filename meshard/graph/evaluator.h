// The only interface between recorded programs and the code that runs them. graph/ and trace/ use
// it; runtime/ implements it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A program to compile: a graph and how the caller uses it.
struct Program {
  std::string name = "main";
  Graph graph;
  /// Parameters whose buffers the results may reuse (indices into graph.parameters()).
  std::vector<std::uint32_t> donated;
  /// Names of the parameters for messages, such as `argument 0.w`. May be empty; not part of the
  /// program's identity.
  std::vector<std::string> parameter_names = {};
  /// Ignores the shardings of leaves and marks and runs everything on one device. Default: false.
  /// @pre no manual regions
  bool unsharded = false;
  /// The compiled program may be kept for, and come from, other processes. Default: true. Not part
  /// of the program's identity.
  bool keep_on_disk = true;
};

/// A program loaded on its devices. Defined by runtime/; opaque to other folders below it.
class LoadedProgram;
class ShardedType;

/// A compiled program. Shared; may be called from several threads.
class CompiledProgram {
 public:
  explicit CompiledProgram(Program source) : source_(std::move(source)) {}
  virtual ~CompiledProgram() = default;
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  /// The compiled program: the recorded one, with its leaves on the devices that it runs on.
  const Program& source() const { return source_; }
  /// Runs the program. `arguments` are the graph's parameters in order; the program holds the
  /// captured values. The results are computed tensors.
  /// @error before the launch, nothing is consumed; after it, donated arguments are gone and the
  /// message says so.
  virtual void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                   SourceLocation where) = 0;
  /// The sharding that the compiler uses for parameter `i`; nullptr for a program without a mesh.
  virtual const Sharding* parameter_sharding(std::size_t i) const = 0;
  /// The type and sharding of the arrays that the program takes for parameter `i` as they are. Its
  /// results have copies of them. nullptr from an evaluator that has no record of them.
  virtual const ShardedType* parameter_type(std::size_t) const { return nullptr; }
  /// The program that runs on the devices; nullptr from an evaluator that compiles nothing.
  virtual const LoadedProgram* loaded() const { return nullptr; }

 private:
  Program source_;
};

/// Computes recorded values and compiles programs.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// Computes the storage of every value. Intermediate values that are still referenced are kept
  /// too.
  virtual void evaluate(std::span<const Value> values, SourceLocation where) = 0;
  /// Copies a value into the layout of `sharding`; each shard goes directly to its device.
  /// @pre value has storage.
  virtual Tensor place(const Value& value, const Sharding& sharding, SourceLocation where) = 0;
  virtual std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation where) = 0;
  /// The whole value in host memory; all processes that have parts of it may have to read it. By
  /// default, storage.to_host().
  /// @error failed precondition if the value was donated or deleted; what failed while it was
  /// computed or moved
  virtual HostArray read(const Storage& storage, SourceLocation where);
  /// Waits until every program launched so far has finished.
  virtual void wait() {}
  /// The number of recorded nodes that must still be computed for a value.
  /// @pre no other thread computes recorded values, unless the evaluator locks them
  virtual std::size_t count_pending(const Value& value);
  /// Called while this thread records, when `log` is due: may compute recorded values, and sets
  /// when the next call is due. By default, nothing is computed.
  virtual void run_ahead(internal::RecordLog& log, SourceLocation where);
};

/// The evaluator of the process.
/// @error failed precondition if none is installed: the program links only the pure half of
/// meshard.
Evaluator& evaluator(SourceLocation where = SourceLocation::current());

/// Makes the evaluator when it is first needed. runtime/ registers itself with this.
using EvaluatorFactory = Evaluator& (*)();
void install_evaluator(EvaluatorFactory factory);

/// The evaluator if one is installed; nullptr otherwise.
Evaluator* installed_evaluator();

/// The storage of a value after evaluation.
/// @error failed precondition if the launch that computed it failed and another thread has read the
/// error; the value is then recorded again.
Storage& computed_storage(const Value& value, SourceLocation where);

/// Starts computing `tensors` in one program, without waiting for it; see sync().
/// @error invalid argument for a tensor without a value; failed precondition for a traced one;
/// errors of the compiler or the plugin.
void compute(std::span<const Tensor> tensors, SourceLocation where = SourceLocation::current());
void compute(std::initializer_list<Tensor> tensors,
             SourceLocation where = SourceLocation::current());

}  // namespace meshard
