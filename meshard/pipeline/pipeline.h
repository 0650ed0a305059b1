// Runs a model as a pipeline of stages.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/stage.h"

namespace meshard {

/// Options of a Pipeline.
struct PipelineOptions {
  /// Takes one step after each batch. Default: none.
  PipelineOptimizer optimizer = {};
  /// Scales the gradients of all stages together if their global norm is above this limit, as
  /// optim::clip_by_global_norm does. Default: 0, no limit.
  double clip_norm = 0;
};

/// The counts and times of a pipeline.
struct PipelineStats {
  /// Programs launched for the work of stages, and tensors sent from one stage to another.
  std::uint64_t launches = 0, sends = 0;
  /// For each stage, the largest number of microbatches whose activations it kept at the same time.
  std::vector<int> peak_activations;
  /// For each stage, the largest number of bytes that it kept for backward passes at the same time,
  /// on all its devices together: inputs and other values of microbatches, without parameters and
  /// gradients of parameters.
  std::vector<std::int64_t> peak_activation_bytes;
};

/// Move-only owner of a model that is divided into stages. Each stage is a program on its own mesh;
/// what goes from one to the next is sent directly to the next one's devices. One thread launches
/// the programs in the order of the schedule and waits for none of them, so that the stages work at
/// the same time.
///
/// The loss is the mean over the microbatches; losses and gradients equal those of the undivided
/// model. A tensor that is a parameter of several stages is one parameter (tied weights): its
/// gradients are summed, and the first of the stages updates it.
///
/// @code
/// Mesh mesh({{"stage", 2}, {"x", 4}});
/// std::vector<PipelineStage> stages{
///     {*mesh.submesh({"x"}, 0), ones({4, 8}) * 0.1f,
///      [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); }},
///     {*mesh.submesh({"x"}, 4), ones({8}),
///      [](const Tensor& w, const Tensor& h, const Tensor& x) {
///        return mean(square(matmul(h, w) - sum(x, {1})));
///      }}};
/// optim::Sgd slow{.rate = 0.01};
/// Pipeline pipeline(stages, one_forward_one_backward(2, 4), {.optimizer = slow});
/// std::vector<Tensor> microbatches(4, ones({2, 4}));
/// float before = pipeline.step(microbatches).item<float>();
/// std::cout << (pipeline.step(microbatches).item<float>() < before) << "\n";
/// @endcode
/// prints `1`.
class Pipeline {
 public:
  /// Brings the parameters to their stages: a parameter that is marked on the stage's mesh stays,
  /// any other goes to the axes of the stage's mesh that have the names of its own axes.
  /// @error invalid argument: another number of stages than the schedule's
  Pipeline(std::vector<PipelineStage> stages, PipelineSchedule schedule,
           PipelineOptions options = {}, SourceLocation where = SourceLocation::current());
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  /// Computes the loss and the gradients of one batch, without an update.
  /// @param microbatches equal parts of the batch, as many as the schedule has
  /// @return the mean of the microbatches' losses. If the stages are in several processes, it is on
  /// a device of each of these, and item() waits for no other process than those that compute it
  /// @error invalid argument: another number of microbatches, or microbatches of different types;
  /// errors of the stages' functions, of the compiler and the plugin. Parameters are unchanged.
  template <class Batch>
  Tensor backward(const std::vector<Batch>& microbatches,
                  SourceLocation where = SourceLocation::current()) {
    return run(erased(microbatches), false, where);
  }
  /// The same, then a step of the optimizer. It waits once, for the new parameters of all stages.
  /// If anything fails, parameters and optimizer states are as before, and the error says in which
  /// stage, work and microbatch. Until the step is done, old and new values are in memory.
  /// @error as for backward(); failed precondition: the pipeline has no optimizer
  template <class Batch>
  Tensor step(const std::vector<Batch>& microbatches,
              SourceLocation where = SourceLocation::current()) {
    return run(erased(microbatches), true, where);
  }

  const PipelineSchedule& schedule() const;
  PipelineStats stats() const;
  /// The parameters of a stage. @tparam Params the type that the stage was made with
  /// @error invalid argument: another type, or no such stage
  template <class Params>
  Params parameters(int stage, SourceLocation where = SourceLocation::current()) const {
    internal::AnyStructure found = stored(stage, /*gradients=*/false, where);
    check_type(found.holds<Params>(), stage, where);
    return found.as<Params>();
  }
  /// The gradients of the last backward() or step(). After a step with a limit for the norm, they
  /// are not scaled. Integer parameters have no gradients: their tensors are undefined.
  /// @error as for parameters(); failed precondition: no gradients exist, or a step has used them
  template <class Params>
  Params gradients(int stage, SourceLocation where = SourceLocation::current()) const {
    internal::AnyStructure found = stored(stage, /*gradients=*/true, where);
    check_type(found.holds<Params>(), stage, where);
    return found.as<Params>();
  }

 private:
  class State;
  template <class Batch>
  static std::vector<internal::AnyStructure> erased(const std::vector<Batch>& microbatches) {
    std::vector<internal::AnyStructure> all;
    for (const Batch& one : microbatches) all.push_back(internal::AnyStructure::of(one));
    return all;
  }
  Tensor run(const std::vector<internal::AnyStructure>& microbatches, bool update,
             SourceLocation where);
  internal::AnyStructure stored(int stage, bool gradients, SourceLocation where) const;
  static void check_type(bool holds, int stage, SourceLocation where);

  std::unique_ptr<State> state_;
};

}  // namespace meshard
