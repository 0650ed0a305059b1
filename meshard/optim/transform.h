// Transformations of gradients into changes of parameters: what optimizers and their parts have in
// common, and the chains, groups and wrappers that are made of them.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/optim/optimizers.h"

namespace meshard::optim {

/// The state of a Transform.
template <class Params>
struct TransformState {
  /// Tensors for each parameter, by name, in the structure of the parameters: `mean`. The tensors
  /// of a
  /// link of a Chain begin with its position: `1.mean`. Where a parameter needs none, it is f32[0].
  std::map<std::string, Params> slots;
  /// Numbers of wrappers, such as how many steps were skipped.
  std::map<std::string, Tensor> numbers;
  Tensor steps;  ///< calls of update() so far, i32
  MESHARD_FIELDS(slots, numbers, steps)
};

namespace internal {

/// The tensors of a state and of a step, which the rules of transforms read and replace.
struct StepTensors {
  std::vector<std::string> names = {};    ///< of the parameters: `blocks.*.wq`
  std::vector<Tensor> parameters = {};    ///< in a step: in the dtype and the sharding of the step
  std::vector<Tensor> layouts = {};       ///< in init: the shardings of the state
  std::vector<Tensor> changes = {};       ///< first the gradients, at the end the changes
  std::vector<std::size_t> stacked = {};  ///< dimensions that stack layers, by parameter
  std::vector<std::optional<Tensor>> rounding = {};  ///< keys for rounding parameters at random
  Tensor steps = {};                                 ///< before this one
  std::map<std::string, std::vector<Tensor>> slots = {};
  std::map<std::string, Tensor> numbers = {};
  std::string prefix = {};  ///< of the names of slots and numbers of the rule that is called

  std::size_t size() const { return parameters.size(); }
  /// The sizes of a layer's parameter.
  Dimensions layer_sizes(std::size_t parameter) const;
  /// The dimensions of a layer's parameter.
  Dimensions layer_dimensions(std::size_t parameter) const;
  /// In init: adds a slot for each parameter, filled with `value`.
  void add_slot(const std::string& name, double value = 0);
  /// In init: the same for one parameter; others have f32[0] until they are added. @param sizes its
  /// sizes; @param like for each, the dimension of the parameter whose sharding it has, or -1
  void add_slot(const std::string& name, std::size_t parameter, const Dimensions& sizes,
                const Dimensions& like, double value = 0);
  void set_slot(const std::string& name, std::size_t parameter, Tensor value);
  /// In init: adds a number.
  void add_number(const std::string& name, HostArray value);
  /// The tensors of a slot. @error invalid argument: the state has none of this name
  std::vector<Tensor>& slot(const std::string& name);
  Tensor& number(const std::string& name);
};

/// What a transform does.
struct TransformRules {
  /// Adds slots and numbers. May be empty.
  std::function<void(StepTensors&)> init;
  /// Replaces changes, slots and numbers.
  std::function<void(StepTensors&)> apply;
};

}  // namespace internal

/// A value: a function from gradients, parameters and a state to the changes of the parameters, and
/// to the next state. Options of optimizers (Adam, Lion, ...) and of their parts (ClipByValue,
/// Decay, ...) convert to it. It is passed to init() and update(), as these are.
class Transform {
 public:
  Transform(const Sgd& sgd);     // NOLINT: written Chain{{ClipByValue{1.0}, Sgd{}}}
  Transform(const Adam& adam);   // NOLINT
  Transform(const AdamW& adam);  // NOLINT
  explicit Transform(internal::TransformRules rules)
      : rules_(std::make_shared<const internal::TransformRules>(std::move(rules))) {}

  const internal::TransformRules& rules() const { return *rules_; }

 private:
  std::shared_ptr<const internal::TransformRules> rules_;
};

/// Options that convert to a Transform, and have no state of their own.
template <class T>
concept TransformOptions =
    std::convertible_to<const T&, Transform> && !internal::kIsAdam<T> && !std::same_as<T, Sgd>;

// The parts of transforms.

/// Applies transforms after each other: each gets the changes of the one before, the first the
/// gradients. Usually the last one is an optimizer, which turns them into a descent:
/// `Chain{{ClipByGlobalNorm{1.0}, Lion{.rate = 1e-4}}}`.
struct Chain {
  std::vector<Transform> links;
  operator Transform() const;  // NOLINT
};

/// Different transforms for different parameters. A pattern matches the name of a parameter, which
/// is its path with dots: `blocks.*.wq` (`*` matches any text and nothing else is special; a layer
/// of an nn::Layers has `*` as its number). The first pattern that matches applies.
/// @error not found, in init(): a pattern that is the first match of no parameter, with the nearest
/// names; invalid argument: parameters that no pattern matches (use Freeze for those that stay).
struct Groups {
  std::vector<std::pair<std::string, Transform>> groups;
  operator Transform() const;  // NOLINT
};

/// Leaves parameters unchanged.
struct Freeze {
  operator Transform() const;  // NOLINT
};

/// Multiplies changes by a number or a schedule.
struct Scale {
  Schedule by;
  operator Transform() const;  // NOLINT
};

/// Adds `by` times the parameter to its change. Before an optimizer, it is a gradient of the square
/// of the parameter. `decay_rank` exempts parameters with fewer dimensions.
struct Decay {
  double by = 0;
  std::int64_t decay_rank = 0;
  operator Transform() const;  // NOLINT
};

/// Adds up changes: v becomes momentum * v + change, which is the new change; with `nesterov` it is
/// change + momentum * v. State: `velocity`.
struct Momentum {
  double momentum = 0.9;
  bool nesterov = false;
  operator Transform() const;  // NOLINT
};

/// Limits each element of a change to [-limit, limit].
struct ClipByValue {
  double limit = 1;
  operator Transform() const;  // NOLINT
};

/// Scales the change of each parameter whose root mean square is above the limit down to it (of
/// each layer, in an nn::Layers).
struct ClipByBlock {
  double limit = 1;
  operator Transform() const;  // NOLINT
};

/// Scales all changes by limit / norm if their global norm is above the limit (see
/// clip_by_global_norm()).
struct ClipByGlobalNorm {
  double limit = 1;
  operator Transform() const;  // NOLINT
};

// Wrappers of transforms.

/// Skips a step if an element of the gradients is not finite: parameters and the state of `inner`
/// stay. After more than `most` such steps in a row they are taken. Numbers: `in_a_row` and
/// `total`, the steps with such gradients, i32.
struct ApplyIfFinite {
  Transform inner;
  std::int64_t most = 0;
  operator Transform() const;  // NOLINT
};

/// Takes a step of `inner` with the mean of the gradients of `every` calls, in the last of them;
/// the others change nothing. For batches that arrive in parts; see accumulated() for a batch that
/// is there as a whole. `mean` = false uses their sum. State: `accumulated`.
struct MultiSteps {
  Transform inner;
  std::int64_t every = 1;
  bool mean = true;
  operator Transform() const;  // NOLINT
};

/// Rounds bf16 parameters at random to one of the two neighbors of the new value, so that changes
/// below half of a unit in the last place count on average (Zamirai et al.: Revisiting BFloat16
/// Training, 2020). Anywhere in a Chain; f32 and f64 parameters are not rounded. The random
/// numbers depend on the seed, the step, and the position of the parameter.
/// @error invalid argument: f16 or f8 parameters.
struct StochasticRounding {
  std::int64_t seed = 0;
  operator Transform() const;  // NOLINT
};

namespace internal {

std::string parameter_name(std::string_view path);
template <class Params>
std::vector<std::string> parameter_names(const Params& params) {
  std::vector<std::string> names;
  structure::for_each(params, [&](const auto& leaf, const std::string& path) {
    if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
      names.push_back(parameter_name(path));
  });
  return names;
}
/// One transform for the parameters of a rank (of a layer, in an nn::Layers), another for all
/// others.
Transform by_rank(std::int64_t rank, Transform of_rank, Transform of_others);
/// Calls the rules, then makes slots and numbers on the devices.
StepTensors made_state(const Transform& transform, StepTensors empty);
/// Calls the rules. @return the new parameters; `step` has the new state
std::vector<Tensor> take_step(const Transform& transform, StepTensors& step);

}  // namespace internal

/// The initial state: made on the devices. A slot in the shape of its parameter has the sharding of
/// the corresponding tensor of `layout` (see zero_layout), any other tensor the sharding of its
/// dimensions.
/// State of 16-bit parameters is f32.
/// @error invalid argument: parameters that are not floats; options out of range.
template <TransformOptions Options, class Params>
TransformState<Params> init(const Options& options, const Params& params, const Params& layout,
                            SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::init");
  internal::StepTensors made = internal::made_state(
      options, {.names = internal::parameter_names(params),
                .parameters = structure::tensors(params),
                .layouts = internal::for_parameters(params, layout, "optim.init", "layout"),
                .stacked = internal::stacked_dimensions(params)});
  TransformState<Params> state{{}, made.numbers, made.steps};
  for (const auto& [name, tensors] : made.slots)
    state.slots.emplace(name, structure::with_tensors(params, tensors));
  return state;
}
/// The same, sharded as the parameters.
template <TransformOptions Options, class Params>
TransformState<Params> init(const Options& options, const Params& params,
                            SourceLocation where = SourceLocation::current()) {
  return init(options, params, params, where);
}

/// One step: the new parameters and the new state. New tensors have the shardings of the old ones;
/// the step of a parameter is computed in the sharding of its state. Call it inside jit.
/// @error invalid argument: gradients of another structure or shapes; a state of another transform.
template <TransformOptions Options, class Params>
std::pair<Params, TransformState<Params>> update(const Options& options, const Params& params,
                                                 const Params& gradients,
                                                 const TransformState<Params>& state,
                                                 SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::update");
  internal::StepTensors step{
      .names = internal::parameter_names(params),
      .parameters = structure::tensors(params),
      .changes = internal::for_parameters(params, gradients, "optim.update", "gradient"),
      .stacked = internal::stacked_dimensions(params),
      .steps = state.steps,
      .numbers = state.numbers};
  for (const auto& [name, slot] : state.slots)
    step.slots.emplace(name,
                       structure::matched_tensors(params, slot, {"optim.update", "parameter", name},
                                                  effective_source({})));
  std::vector<Tensor> next = internal::take_step(options, step);
  TransformState<Params> after{{}, step.numbers, step.steps};
  for (const auto& [name, tensors] : step.slots)
    after.slots.emplace(name, structure::with_tensors(params, tensors));
  return {structure::with_tensors(params, next), std::move(after)};
}

}  // namespace meshard::optim
