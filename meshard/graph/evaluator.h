// The one door from recorded programs to whatever runs them. graph/ and trace/ speak only to this
// face; runtime/ installs itself behind it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A program to compile: a graph and what its caller promises and wants.
struct Program {
  std::string name = "main";
  Graph graph;
  /// Parameters whose buffers the results may reuse (indices into graph.parameters()).
  std::vector<std::uint32_t> donated;
  /// What messages call the parameters: `argument 0.w`. May be empty; no part of the program's
  /// identity.
  std::vector<std::string> parameter_names = {};
  /// Shardings of leaves and marks say nothing: everything on one device.
  /// @pre no manual regions
  bool unsharded = false;
};

/// A program that was compiled. Shared; may be called from several threads.
class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;
  /// Runs it. `arguments` are the graph's parameters in order; captured values are held inside. The
  /// results are computed tensors.
  /// @error before the launch nothing is consumed; after it, donated arguments are gone and the
  /// message says so.
  virtual void run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                   SourceLocation where) = 0;
  /// The sharding that the compiler uses for parameter `i`; nullptr without a mesh.
  virtual const Sharding* parameter_sharding(std::size_t i) const = 0;
};

/// Computes recorded values and compiles programs.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// Gives every value its storage; what was computed on the way and is still referred to is kept.
  virtual void evaluate(std::span<const Value> values, SourceLocation where) = 0;
  /// The value laid out as `sharding` says, each shard straight to its device.
  /// @pre value has storage.
  virtual Tensor place(const Value& value, const Sharding& sharding, SourceLocation where) = 0;
  virtual std::shared_ptr<CompiledProgram> compile(Program program, SourceLocation where) = 0;
  /// Waits until every program that was launched so far is through.
  virtual void wait() {}
  /// How many recorded nodes a value still needs to be computed.
  /// @pre nobody computes recorded values beside this thread, unless the evaluator locks them
  virtual std::size_t count_pending(const Value& value);
};

/// The evaluator of the process.
/// @error failed precondition if none is installed: the program uses only the pure half of meshard.
Evaluator& evaluator(SourceLocation where = SourceLocation::current());

/// Called when an evaluator is first needed; makes it. runtime/ registers itself with this.
using EvaluatorFactory = Evaluator& (*)();
void install_evaluator(EvaluatorFactory factory);

/// The evaluator if one is installed; nullptr otherwise.
Evaluator* installed_evaluator();

/// The storage of a value that was evaluated.
/// @error failed precondition if the launch that was to compute it failed, and another thread has
/// read its error: it is recorded again.
Storage& computed_storage(const Value& value, SourceLocation where);

/// Starts to compute the values of `tensors`, in one program; does not wait for it (sync() does).
/// @error invalid argument for a tensor without a value; failed precondition for a traced one; what
/// the compiler or the plugin answers.
void compute(std::span<const Tensor> tensors, SourceLocation where = SourceLocation::current());
void compute(std::initializer_list<Tensor> tensors,
             SourceLocation where = SourceLocation::current());

}  // namespace meshard
