// Transforms of gradients, averages of parameters, and more schedules. The classes of options are
// in python/meshard/optim.py; the functions here take the options and the parts of the state.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "meshard/core.h"
#include "meshard/optim/adaptive.h"
#include "meshard/optim/average.h"
#include "meshard/optim/decay_schedule.h"
#include "meshard/optim/matrix_optimizers.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/nn/optimizer_options.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "rate"_a

namespace meshard::python {
namespace {

using optim::Transform;
using State = optim::TransformState<PyTree>;

// --- state -------------------------------------------------------------------------------------

// (slots, numbers, steps)
nb::object state_object(const State& state) {
  nb::dict slots, numbers;
  for (const auto& [name, slot] : state.slots) slots[name.c_str()] = slot.object();
  for (const auto& [name, number] : state.numbers) numbers[name.c_str()] = tensor_object(number);
  return nb::make_tuple(slots, numbers, tensor_object(state.steps));
}

Tensor tensor_of(nb::handle object, const char* what) {
  if (const Tensor* tensor = tensor_in(object.ptr())) return *tensor;
  if (std::optional<Tensor> made = tensor_of_value(object.ptr(), caller_line())) return *made;
  throw nb::type_error(cat(what, " of a state must be a tensor").c_str());
}

State state_of(const nb::dict& slots, const nb::dict& numbers, nb::handle steps) {
  State state{{}, {}, tensor_of(steps, "the steps")};
  for (auto [name, slot] : slots)
    state.slots.emplace(nb::cast<std::string>(name), PyTree::of(slot));
  for (auto [name, number] : numbers)
    state.numbers.emplace(nb::cast<std::string>(name), tensor_of(number, "a number"));
  return state;
}

nb::object init_state(const Transform& transform, const PyTree& params, const PyTree& layout) {
  CallerLine line;
  State state;
  {
    Unlocked unlocked;
    state = optim::init(transform, params, layout, line.where());
  }
  return state_object(state);
}

// -> (parameters, state)
nb::object update(const Transform& transform, const PyTree& params, const PyTree& gradients,
                  const nb::dict& slots, const nb::dict& numbers, nb::handle steps) {
  CallerLine line;
  const State before = state_of(slots, numbers, steps);
  std::optional<std::pair<PyTree, State>> next;
  {
    Unlocked unlocked;
    next = optim::update(transform, params, gradients, before);
  }
  return nb::make_tuple(next->first, state_object(next->second));
}

// --- transforms --------------------------------------------------------------------------------

void bind_wrappers(nb::module_& m) {
  m.def(
      "chain",
      [](std::vector<Transform> links) { return Transform(optim::Chain{std::move(links)}); },
      "links"_a);
  m.def(
      "groups",
      [](std::vector<std::pair<std::string, Transform>> groups) {
        return Transform(optim::Groups{std::move(groups)});
      },
      "groups"_a);
  m.def("freeze", [] { return Transform(optim::Freeze{}); });
  m.def(
      "scale", [](nb::object by) { return Transform(optim::Scale{schedule_of(std::move(by))}); },
      "by"_a);
  m.def(
      "decay",
      [](double by, std::int64_t rank) {
        return Transform(optim::Decay{by, rank});
      },
      "by"_a, "decay_rank"_a);
  m.def(
      "momentum",
      [](double momentum, bool nesterov) {
        return Transform(optim::Momentum{momentum, nesterov});
      },
      "momentum"_a, "nesterov"_a);
  m.def(
      "clip_by_value", [](double limit) { return Transform(optim::ClipByValue{limit}); },
      "limit"_a);
  m.def(
      "clip_by_block", [](double limit) { return Transform(optim::ClipByBlock{limit}); },
      "limit"_a);
  m.def(
      "clip_by_global_norm", [](double limit) { return Transform(optim::ClipByGlobalNorm{limit}); },
      "limit"_a);
  m.def(
      "apply_if_finite",
      [](const Transform& inner, std::int64_t most) {
        return Transform(optim::ApplyIfFinite{inner, most});
      },
      "inner"_a, "most"_a);
  m.def(
      "multi_steps",
      [](const Transform& inner, std::int64_t every, bool mean) {
        return Transform(optim::MultiSteps{inner, every, mean});
      },
      "inner"_a, "every"_a, "mean"_a);
  m.def(
      "stochastic_rounding",
      [](std::int64_t seed) { return Transform(optim::StochasticRounding{seed}); }, "seed"_a);
}

void bind_adaptive(nb::module_& m) {
  m.def(
      "adam",
      [](nb::object rate, double beta1, double beta2, double epsilon, double weight_decay,
         std::int64_t decay_rank, bool efficient) {
        return Transform(
            adam_of(std::move(rate), beta1, beta2, epsilon, weight_decay, decay_rank, efficient));
      },
      "rate"_a, "beta1"_a, "beta2"_a, "epsilon"_a, "weight_decay"_a, "decay_rank"_a, "efficient"_a);
  m.def(
      "sgd",
      [](nb::object rate, double momentum, bool nesterov, double weight_decay,
         std::int64_t decay_rank) {
        return Transform(sgd_of(std::move(rate), momentum, nesterov, weight_decay, decay_rank));
      },
      "rate"_a, "momentum"_a, "nesterov"_a, "weight_decay"_a, "decay_rank"_a);
  m.def(
      "lion",
      [](nb::object rate, double beta1, double beta2, double weight_decay, std::int64_t rank) {
        return Transform(
            optim::Lion{schedule_of(std::move(rate)), beta1, beta2, weight_decay, rank});
      },
      "rate"_a, "beta1"_a, "beta2"_a, "weight_decay"_a, "decay_rank"_a);
  m.def(
      "lamb",
      [](nb::object rate, double beta1, double beta2, double epsilon, double epsilon_root,
         double weight_decay, std::int64_t rank) {
        return Transform(optim::Lamb{schedule_of(std::move(rate)), beta1, beta2, epsilon,
                                     epsilon_root, weight_decay, rank});
      },
      "rate"_a, "beta1"_a, "beta2"_a, "epsilon"_a, "epsilon_root"_a, "weight_decay"_a,
      "decay_rank"_a);
  m.def(
      "rms_prop",
      [](nb::object rate, double decay, double epsilon, bool epsilon_inside, double first,
         bool centered, bool corrected, double momentum, bool nesterov) {
        return Transform(optim::RmsProp{schedule_of(std::move(rate)), decay, epsilon,
                                        epsilon_inside, first, centered, corrected, momentum,
                                        nesterov});
      },
      "rate"_a, "decay"_a, "epsilon"_a, "epsilon_inside"_a, "first"_a, "centered"_a, "corrected"_a,
      "momentum"_a, "nesterov"_a);
  m.def(
      "adagrad",
      [](nb::object rate, double first, double epsilon) {
        return Transform(optim::Adagrad{schedule_of(std::move(rate)), first, epsilon});
      },
      "rate"_a, "first"_a, "epsilon"_a);
  m.def(
      "adafactor",
      [](nb::object rate, double decay, std::int64_t smallest_factored, bool relative, double clip,
         double momentum, double weight_decay, std::int64_t rank, double epsilon, bool factored) {
        return Transform(optim::Adafactor{schedule_of(std::move(rate)), decay, smallest_factored,
                                          relative, clip, momentum, weight_decay, rank, epsilon,
                                          factored});
      },
      "rate"_a, "decay"_a, "smallest_factored"_a, "relative"_a, "clip"_a, "momentum"_a,
      "weight_decay"_a, "decay_rank"_a, "epsilon"_a, "factored"_a);
}

void bind_matrix_optimizers(nb::module_& m) {
  m.def(
      "muon",
      [](nb::object rate, double momentum, bool nesterov, std::int64_t iterations,
         std::array<double, 3> coefficients, double epsilon, double weight_decay, bool adaptive,
         double rms, nb::object adam_rate, double adam_beta1, double adam_beta2,
         double adam_weight_decay) {
        optim::Muon muon{.rate = schedule_of(std::move(rate)),
                         .momentum = momentum,
                         .nesterov = nesterov,
                         .iterations = iterations,
                         .coefficients = coefficients,
                         .epsilon = epsilon,
                         .weight_decay = weight_decay,
                         .adaptive = adaptive,
                         .rms = rms,
                         .adam_beta1 = adam_beta1,
                         .adam_beta2 = adam_beta2,
                         .adam_weight_decay = adam_weight_decay};
        if (!adam_rate.is_none()) muon.adam_rate = schedule_of(std::move(adam_rate));
        return Transform(muon);
      },
      "rate"_a, "momentum"_a, "nesterov"_a, "iterations"_a, "coefficients"_a, "epsilon"_a,
      "weight_decay"_a, "adaptive"_a, "rms"_a, "adam_rate"_a.none(), "adam_beta1"_a, "adam_beta2"_a,
      "adam_weight_decay"_a);
  m.def(
      "shampoo",
      [](nb::object rate, double epsilon, double momentum, bool nesterov, double weight_decay,
         std::int64_t rank, std::int64_t largest) {
        return Transform(optim::Shampoo{schedule_of(std::move(rate)), epsilon, momentum, nesterov,
                                        weight_decay, rank, largest});
      },
      "rate"_a, "epsilon"_a, "momentum"_a, "nesterov"_a, "weight_decay"_a, "decay_rank"_a,
      "largest"_a);
}

// --- averages ----------------------------------------------------------------------------------

using Averages = optim::AverageState<PyTree>;

nb::object averages_object(const Averages& state) {
  return nb::make_tuple(state.mean, tensor_object(state.count), tensor_object(state.steps));
}

void bind_averages(nb::module_& m) {
  m.def(
      "average_init",
      [](std::optional<double> decay, std::int64_t start, std::int64_t every, const PyTree& params,
         const PyTree& layout) {
        CallerLine line;
        Averages state;
        {
          Unlocked unlocked;
          state = optim::init(optim::Average{decay, start, every}, params, layout, line.where());
        }
        return averages_object(state);
      },
      nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def(
      "average_update",
      [](std::optional<double> decay, std::int64_t start, std::int64_t every, const PyTree& params,
         const PyTree& mean, nb::handle count, nb::handle steps) {
        CallerLine line;
        const Averages before{mean, tensor_of(count, "the count"), tensor_of(steps, "the steps")};
        return averages_object(optim::update(optim::Average{decay, start, every}, params, before));
      },
      nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("averaged", [](const PyTree& mean, nb::handle count, const PyTree& params) {
    CallerLine line;
    const Tensor number = tensor_of(count, "the count");
    return optim::averaged(Averages{mean, number, number}, params);
  });
}

// --- schedules ---------------------------------------------------------------------------------

void bind_decay_schedules(nb::module_& m) {
  m.def(
      "exponential",
      [](double first, std::int64_t steps, double factor, bool staircase,
         std::optional<double> last) {
        CallerLine line;
        return optim::exponential(first, steps, factor, {staircase, last});
      },
      "first"_a, "steps"_a, "factor"_a, nb::kw_only(), "staircase"_a = false,
      "last"_a.none() = nb::none(),
      "`first * factor**(step / steps)`.\n\n"
      "With `staircase` only whole multiples of `steps` count, so that the rate falls in stairs. "
      "It stops at `last`.\n\n"
      "Raises InvalidArgumentError if steps is below 1, and unless the factor is above 0.");
  m.def(
      "inverse_square_root",
      [](double first, std::int64_t steps) {
        CallerLine line;
        return optim::inverse_square_root(first, steps);
      },
      "first"_a, "steps"_a,
      "`first / sqrt(1 + step / steps)`. After a warm-up of `steps` steps it is the schedule of "
      "Vaswani et al. (Attention Is All You Need, 2017).\n\n"
      "Raises InvalidArgumentError if steps is below 1.");
  m.def(
      "polynomial",
      [](double first, double last, double power, std::int64_t steps) {
        CallerLine line;
        return optim::polynomial(first, last, power, steps);
      },
      "first"_a, "last"_a, "power"_a, "steps"_a,
      "`(first - last) * (1 - step / steps)**power + last`, and `last` from step `steps` on.\n\n"
      "Raises InvalidArgumentError if steps is below 1.");
  m.def(
      "cosine_restarts",
      [](double first, std::int64_t steps, std::int64_t longer, double lower, double last) {
        CallerLine line;
        return optim::cosine_restarts(first, steps, {longer, lower, last});
      },
      "first"_a, "steps"_a, nb::kw_only(), "longer"_a = 1, "lower"_a = 1.0, "last"_a = 0.0,
      "Half a cosine wave, as cosine(), from `first` to `last` in `steps` steps, again and again "
      "(Loshchilov and Hutter: SGDR, 2017).\n\n"
      "Each period has `longer` times the steps of the one before, and begins with `lower` times "
      "its rate.\n\n"
      "Raises InvalidArgumentError if steps or longer is below 1.");
  m.def(
      "interpolated",
      [](const std::vector<std::pair<std::int64_t, double>>& points, const std::string& by) {
        CallerLine line;
        if (by != "linear" && by != "cosine")
          throw nb::value_error(cat("by is 'linear' or 'cosine', not '", by, "'").c_str());
        return optim::interpolated(
            points, by == "linear" ? optim::Interpolation::kLinear : optim::Interpolation::kCosine);
      },
      "points"_a, nb::kw_only(), "by"_a = "linear",
      "Through all points (step, rate), and constant after the last one. `by` is \"linear\" or "
      "\"cosine\". Example: `interpolated([(0, 0.0), (100, 1e-3), (1000, 1e-5)])`.\n\n"
      "Raises InvalidArgumentError unless the first step is 0 and the steps are ascending.");
  m.def(
      "one_cycle",
      [](double peak, std::int64_t steps, double rise, double first_divisor, double last_divisor) {
        CallerLine line;
        return optim::one_cycle(peak, steps, {rise, first_divisor, last_divisor});
      },
      "peak"_a, "steps"_a, nb::kw_only(), "rise"_a = 0.3, "first_divisor"_a = 25.0,
      "last_divisor"_a = 1e4,
      "By cosine waves from `peak / first_divisor` to `peak` at the fraction `rise` of the steps, "
      "and down to the first rate divided by `last_divisor` at step `steps` (Smith and Topin: "
      "Super-Convergence, 2018).\n\n"
      "Raises InvalidArgumentError if the peak is not between the first and the last step.");
}

}  // namespace

void bind_optim_transforms(nb::module_& optimizers) {
  nb::class_<Transform>(optimizers, "Transform").def("init", init_state).def("update", update);
  nb::module_ m = optimizers.def_submodule("transforms", "Transforms of gradients, by name.");
  bind_wrappers(m);
  bind_adaptive(m);
  bind_matrix_optimizers(m);
  bind_averages(optimizers);
  bind_decay_schedules(optimizers);
}

}  // namespace meshard::python
