// The programs of one stage of a pipeline, and the values of all stages.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/body_vjp.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/stage.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

/// What a BodyProgram does in addition to the body.
struct BodyProgramOptions {
  std::string name = "main";
  /// The number of first results that are added to accumulators, in the accumulators' memory.
  std::size_t accumulated = 0;
  /// The value of the first parameter, a constant; none: it is a parameter as the others.
  std::optional<double> first_parameter = std::nullopt;
};

/// A handle on the jitted form of a body. Parameters that no result needs are not passed to the
/// compiled program.
class BodyProgram {
 public:
  BodyProgram() = default;
  BodyProgram(Body body, const BodyProgramOptions& options, SourceLocation where);

  const Body& body() const { return body_; }
  /// The numbers of the parameters that the program needs, in order.
  const std::vector<std::size_t>& used() const { return used_; }
  /// Runs the program without waiting for it.
  /// @param accumulators one for each accumulated result, on the devices of the program. They are
  /// gone afterward.
  /// @param values one for each parameter; those that are not used may be undefined
  /// @return the results; the accumulated ones are the new accumulators
  std::vector<Tensor> operator()(const std::vector<Tensor>& accumulators,
                                 const std::vector<Tensor>& values) const;

  /// Hands the jitted function and the arguments of a call to `use`, which compiles it elsewhere.
  template <class Use>
  auto with_call(const std::vector<Tensor>& accumulators, const std::vector<Tensor>& values,
                 const Use& use) const {
    std::vector<Tensor> given;
    for (std::size_t i : used_) given.push_back(values[i]);
    return use(*jit_, accumulators, given);
  }

 private:
  struct Run {
    Body body;
    std::vector<std::size_t> used;
    BodyProgramOptions options;
    std::vector<Tensor> operator()(const std::vector<Tensor>& accumulators,
                                   const std::vector<Tensor>& values) const;
  };

  Body body_;
  std::vector<std::size_t> used_;
  std::optional<Jit<Run>> jit_;
};

/// How a stage is differentiated.
struct StageProgramOptions {
  /// `stage 0`
  std::string name;
  bool is_last = false;
  /// Computes the gradients of inputs and parameters in separate programs.
  bool splits_gradients = false;
  /// The cotangent of the loss, for the last stage.
  double seed = 1;
};

/// A value: the programs of one stage for arguments of certain types, and how values go from one to
/// the next. The stage's arguments are its parameters, the carry (what the previous stage
/// returned), the microbatch, and the tensors that its function captures.
class StagePrograms {
 public:
  /// Traces the stage and its derivative. Compiles nothing.
  /// @param parameters on the stage's mesh
  /// @param carry null for the first stage
  /// @error invalid argument: the function does not accept the structures; the last stage returns
  /// something else than a float of rank 0; errors of the function and of its derivative
  StagePrograms(const PipelineStage& stage, const std::vector<Tensor>& parameters,
                const AnyStructure* carry, const AnyStructure& batch,
                const StageProgramOptions& options);

  /// What one microbatch needs for its gradients.
  struct Kept {
    /// One for each residual.
    std::vector<Tensor> residuals;
    /// The cotangents, between the input gradient and the weight gradient.
    std::vector<Tensor> cotangents;
    /// The values that the program of the input gradient hands over to the program of the weight
    /// gradient.
    std::vector<Tensor> handed_over;
  };

  /// Runs a program: by default on the devices. An explanation compiles it instead, and returns
  /// results without values.
  using Execute = std::function<std::vector<Tensor>(const BodyProgram& program,
                                                    const std::vector<Tensor>& accumulators,
                                                    const std::vector<Tensor>& values)>;
  static std::vector<Tensor> launched(const BodyProgram& program,
                                      const std::vector<Tensor>& accumulators,
                                      const std::vector<Tensor>& values) {
    return program(accumulators, values);
  }

  /// The bytes of its tensors, without parameters and captured tensors; each value counts once.
  std::int64_t bytes_of(const Kept& kept) const;
  /// The tensors whose bytes these are.
  std::vector<Tensor> tensors_of(const Kept& kept) const;

  /// The stage's result with undefined tensors, and the tensors' types.
  const AnyStructure& result() const { return result_; }
  const std::vector<TensorType>& result_types() const { return result_types_; }
  /// The parameters that have a gradient, and the positions in the carry that have one.
  const std::vector<std::size_t>& parameter_gradients() const { return parameter_gradients_; }
  const std::vector<std::size_t>& carry_gradients() const { return carry_gradients_; }
  /// The positions in the result that have a cotangent.
  const std::vector<std::size_t>& cotangents() const { return cotangents_; }

  /// @param carry, batch tensors on the stage's mesh, or unplaced
  /// @return the tensors of the result
  std::vector<Tensor> forward(const std::vector<Tensor>& parameters,
                              const std::vector<Tensor>& carry, const std::vector<Tensor>& batch,
                              Kept& kept, const Execute& execute = launched) const;
  /// Adds the gradients of the parameters to `accumulators`.
  /// @param cotangents one for each entry of cotangents(); none for the last stage
  /// @return the gradients of carry_gradients()
  std::vector<Tensor> backward(std::vector<Tensor>& accumulators, std::vector<Tensor> cotangents,
                               Kept kept, const Execute& execute = launched) const;
  /// The first half of backward(). @return as backward()
  std::vector<Tensor> input_gradient(std::vector<Tensor> cotangents, Kept& kept,
                                     const Execute& execute = launched) const;
  /// The second half. @pre input_gradient() was called
  void weight_gradient(std::vector<Tensor>& accumulators, Kept kept,
                       const Execute& execute = launched) const;

 private:
  void check_arguments(const PipelineStage& stage, const AnyStructure* carry,
                       const AnyStructure& batch) const;
  void check_loss(const PipelineStage& stage, const Body& body) const;
  // The program of the stage's function. Sets captured_ and result_.
  Body trace(const PipelineStage& stage, const std::vector<Tensor>& parameters,
             const AnyStructure* carry, const AnyStructure& batch);
  // Sets the positions that have cotangents and gradients, the residuals, and backward_captured_.
  BodyVjp differentiate(const PipelineStage& stage, const Body& body, std::size_t num_parameters,
                        std::size_t num_carry);
  void make_programs(const PipelineStage& stage, const BodyVjp& vjp);
  std::vector<Tensor> backward_arguments(std::vector<Tensor> cotangents, const Kept& kept) const;

  StageProgramOptions options_;
  std::vector<Tensor> captured_;           // by the stage's function
  std::vector<Tensor> backward_captured_;  // by the derivative
  AnyStructure result_;
  std::vector<TensorType> result_types_;
  std::vector<std::size_t> parameter_gradients_, carry_gradients_, cotangents_;
  std::vector<BodyVjp::Residual> residuals_;
  std::vector<std::size_t> counted_residuals_;  // those that are no parameters or captured tensors
  std::int64_t residual_bytes_ = 0;             // of one microbatch
  BodyProgram forward_, backward_, input_gradient_, weight_gradient_;
};

/// True if the value has a sharding over the devices of `mesh`.
bool is_on(const Tensor& value, const Mesh& mesh);

/// The sharding over `mesh` that is most like `sharding`: each dimension is split along the axes of
/// the same names, as far as they exist and divide it evenly. Without a sharding: replicated.
Sharding like_sharding(const std::optional<Sharding>& sharding, const Mesh& mesh,
                       const Shape& shape);

/// The value on the devices of `mesh`: itself if it is there, else a copy in like_sharding().
Tensor placed(const Tensor& value, const Mesh& mesh);

/// The optimizer's step of one stage.
struct UpdateRun {
  std::shared_ptr<const StageFunction> function;
  PipelineOptimizer optimizer;
  AnyStructure state;  // its form
  /// @param factor of all gradients; empty: none
  /// @return the new parameters, and the new state
  std::pair<std::vector<Tensor>, std::vector<Tensor>> operator()(
      const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
      const std::vector<Tensor>& now, const std::vector<Tensor>& factor) const;
};

/// Makes the accumulators of one stage.
struct ZerosRun {
  std::vector<TensorType> types;
  std::vector<std::optional<Sharding>> shardings;
  std::vector<Tensor> operator()() const;
};

/// The sharding of a result of a stage, and that on the next stage's mesh.
struct Destination {
  std::optional<Sharding> from;
  Sharding to;
};

/// A stage with its values.
struct StageState {
  explicit StageState(PipelineStage made) : stage(std::move(made)) {}
  PipelineStage stage;
  std::string name;
  /// Whether the schedule computes the gradients of inputs and parameters apart.
  bool splits_gradients = false;
  std::vector<Tensor> parameters, accumulators;
  /// The destinations of its results, filled when they are first sent.
  std::vector<Destination> destinations;
  AnyStructure optimizer_state;
  std::optional<StagePrograms> programs;
  std::optional<Jit<ZerosRun>> zeros;
  std::optional<Jit<UpdateRun>> update;

  /// The accumulator of parameter `leaf`; null if it has no gradient.
  Tensor* accumulator(std::size_t leaf);
};

/// The stages of a pipeline with their names, without values and programs.
/// @pre as many as the schedule has
std::vector<StageState> stage_states(std::vector<PipelineStage> stages,
                                     const PipelineSchedule& schedule);

/// Traces the stages, one after the other.
void trace_stages(std::span<StageState> stages, const AnyStructure& microbatch,
                  const PipelineSchedule& schedule);

/// The types and shardings of the accumulators: those of the parameters, f32 for narrower floats.
/// @pre the stage has programs
ZerosRun accumulators_of(const StageState& stage);

/// A program that makes the accumulators of zeros.
/// @pre the stage has programs
Jit<ZerosRun> zeros_of(const StageState& stage);

/// A parameter that is also one of an earlier stage.
struct Tie {
  std::size_t stage, leaf, owner_stage, owner_leaf;
};

/// The gradients' norm, as programs.
class GradientNorm {
 public:
  GradientNorm();
  /// The factor that limits the norm of the accumulators of all stages to `limit`. Tied parameters
  /// count once. Empty without a limit (0), or without gradients.
  std::vector<Tensor> factor(std::span<const StageState> stages, std::span<const Tie> ties,
                             double limit) const;

 private:
  struct Run {
    Tensor operator()(const std::vector<Tensor>& gradients) const;
  };
  Jit<Run> squares_;
};

/// The new values of one stage.
struct UpdatedStage {
  std::vector<Tensor> parameters, optimizer_state;
};

/// @error invalid argument: a stage has parameters that an optimizer cannot update
void check_trainable(const StageState& stage);

/// Launches the optimizer's step of one stage. It uses up the accumulators, in whose memory the new
/// parameters are. The parameters and the optimizer's state remain as they are until the caller
/// replaces them, because another stage's step may fail.
UpdatedStage updated(StageState& stage, const PipelineOptimizer& optimizer,
                     const std::vector<Tensor>& factor);

}  // namespace meshard::internal
