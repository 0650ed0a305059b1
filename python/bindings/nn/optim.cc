// Optimizers. Their classes are in python/meshard/optim.py; the functions here take the options and
// the parts of the state.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/nn/optimizer_options.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {

optim::Schedule schedule_of(nb::object object) {
  optim::Schedule* bound = nullptr;
  if (nb::try_cast(object, bound) && bound) return *bound;
  double rate = 0;
  if (nb::try_cast(object, rate)) return optim::Schedule(rate);
  if (!PyCallable_Check(object.ptr()))
    throw nb::type_error("a learning rate is a number, a Schedule or a function of the step");
  return optim::Schedule([function = share(std::move(object))](const Tensor& step) {
    Locked locked;
    UserCode own_lines;
    nb::object result = nb::handle(function.get())(tensor_object(step));
    if (const Tensor* tensor = tensor_in(result.ptr())) return astype(*tensor, DType::f32);
    if (std::optional<Tensor> value = tensor_of_value(result.ptr(), caller_line()))
      return astype(*value, DType::f32);
    throw nb::type_error("a schedule must return a rate");
  });
}

optim::AdamW adam_of(nb::object rate, double beta1, double beta2, double epsilon,
                     double weight_decay, std::int64_t decay_rank, bool efficient) {
  return {.rate = schedule_of(std::move(rate)),
          .beta1 = beta1,
          .beta2 = beta2,
          .epsilon = epsilon,
          .weight_decay = weight_decay,
          .decay_rank = decay_rank,
          .form = efficient ? optim::AdamForm::kEfficient : optim::AdamForm::kCorrected};
}

optim::Sgd sgd_of(nb::object rate, double momentum, bool nesterov, double weight_decay,
                  std::int64_t decay_rank) {
  return {.rate = schedule_of(std::move(rate)),
          .momentum = momentum,
          .nesterov = nesterov,
          .weight_decay = weight_decay,
          .decay_rank = decay_rank};
}

namespace {

// What f returns. Values may be computed or placed meanwhile, without the lock.
template <class F>
auto unlocked(const F& f) {
  Unlocked without_lock;
  return f();
}

// --- schedules ---------------------------------------------------------------------------------

void bind_schedules(nb::module_& optimizers) {
  nb::class_<optim::Schedule>(
      optimizers, "Schedule",
      "The learning rate of each step: a number, or a function of the number of steps taken before "
      "(f32 of rank 0).\n\n"
      "Inside jit the schedule is part of the program, which computes the rate from the step "
      "number: one compilation serves all steps.\n\n"
      "    rate = optim.warm_up(3e-4, 100, optim.cosine(3e-4, 900, 3e-5))\n"
      "    float(rate(50))  # 1.53e-4")
      .def(
          "__init__",
          [](optim::Schedule* self, nb::object rate) {
            new (self) optim::Schedule(schedule_of(std::move(rate)));
          },
          nb::arg("rate"))
      .def(
          "__call__",
          [](const optim::Schedule& self, const Operand& step) {
            CallerLine line;
            if (step.is_tensor()) return tensor_object(self(tensor_argument(step)));
            return tensor_object(self(full({}, step.in(), DType::f32)));
          },
          nb::arg("step"),
          "The rate, f32 of rank 0, of the step that follows `step` steps.\n\n"
          "Raises InvalidArgumentError if the rank of `step` is not 0.");
  optimizers.def(
      "linear",
      [](double first, double last, std::int64_t steps) {
        CallerLine line;
        return optim::linear(first, last, steps);
      },
      nb::arg("first"), nb::arg("last"), nb::arg("steps"),
      "Linear from `first` at step 0 to `last` at step `steps`, and constant from then "
      "on.\n\nRaises InvalidArgumentError if steps is below 1.");
  optimizers.def(
      "cosine",
      [](double first, std::int64_t steps, double last) {
        CallerLine line;
        return optim::cosine(first, steps, last);
      },
      nb::arg("first"), nb::arg("steps"), nb::arg("last") = 0.0,
      "Half a cosine wave from `first` at step 0 to `last` at step `steps`, and constant "
      "from then on (Loshchilov and Hutter: SGDR, 2017, without restarts).\n\n"
      "Raises InvalidArgumentError if steps is below 1.");
  optimizers.def(
      "warm_up",
      [](double peak, std::int64_t steps, nb::object then) {
        CallerLine line;
        return optim::warm_up(peak, steps, schedule_of(std::move(then)));
      },
      nb::arg("peak"), nb::arg("steps"), nb::arg("then"),
      "Linear from `peak / steps` at step 0, reaching `peak` in the `steps`-th step; then `then`, "
      "a "
      "rate or a schedule. Step 0 of `then` is step `steps` of the result.\n\n"
      "Raises InvalidArgumentError if steps is below 1.");
  optimizers.def(
      "joined",
      [](nb::object first, std::int64_t steps, nb::object second) {
        CallerLine line;
        return optim::joined(schedule_of(std::move(first)), steps, schedule_of(std::move(second)));
      },
      nb::arg("first"), nb::arg("steps"), nb::arg("second"),
      "`first` before step `steps`; from then on `second`, whose steps count from 0 again. Both "
      "are "
      "rates or schedules.\n\nRaises InvalidArgumentError if steps is below 1.");
  optimizers.def(
      "piecewise",
      [](const std::vector<std::pair<std::int64_t, double>>& rates) {
        CallerLine line;
        return optim::piecewise(rates);
      },
      nb::arg("rates"),
      "Piecewise constant: the rate of the last pair (step, rate) whose step has been "
      "reached. Example: `piecewise([(0, 1e-3), (1000, 1e-4)])`.\n\n"
      "Raises InvalidArgumentError unless the first step is 0 and the steps are "
      "ascending.");
}

// --- optimizers --------------------------------------------------------------------------------

void bind_steps(nb::module_& optimizers) {
  // -> (mean, square, steps)
  optimizers.def("adam_init", [](const PyTree& params, const PyTree& layout) {
    CallerLine line;
    optim::AdamState<PyTree> state =
        unlocked([&] { return optim::init(optim::Adam{}, params, layout, line.where()); });
    return nb::make_tuple(state.mean, state.square, tensor_object(state.steps));
  });
  // -> (parameters, (mean, square, steps))
  optimizers.def("adam_update", [](nb::object rate, double beta1, double beta2, double epsilon,
                                   double weight_decay, std::int64_t decay_rank, bool efficient,
                                   const PyTree& params, const PyTree& gradients,
                                   const PyTree& mean, const PyTree& square, const Operand& steps) {
    CallerLine line;
    const optim::AdamW adam =
        adam_of(std::move(rate), beta1, beta2, epsilon, weight_decay, decay_rank, efficient);
    const optim::AdamState<PyTree> before{mean, square, tensor_argument(steps)};
    auto [next, state] = unlocked([&] { return optim::update(adam, params, gradients, before); });
    return nb::make_tuple(next,
                          nb::make_tuple(state.mean, state.square, tensor_object(state.steps)));
  });
  // -> (velocity or None, steps)
  optimizers.def("sgd_init", [](double momentum, const PyTree& params, const PyTree& layout) {
    CallerLine line;
    const optim::Sgd sgd{.momentum = momentum};
    optim::SgdState<PyTree> state =
        unlocked([&] { return optim::init(sgd, params, layout, line.where()); });
    return nb::make_tuple(state.velocity, tensor_object(state.steps));
  });
  // -> (parameters, (velocity or None, steps))
  optimizers.def(
      "sgd_update",
      [](nb::object rate, double momentum, bool nesterov, double weight_decay,
         std::int64_t decay_rank, const PyTree& params, const PyTree& gradients,
         nb::object velocity, const Operand& steps) {
        CallerLine line;
        const optim::Sgd sgd =
            sgd_of(std::move(rate), momentum, nesterov, weight_decay, decay_rank);
        optim::SgdState<PyTree> before{std::nullopt, tensor_argument(steps)};
        if (!velocity.is_none()) before.velocity = PyTree::of(velocity);
        auto [next, state] =
            unlocked([&] { return optim::update(sgd, params, gradients, before); });
        return nb::make_tuple(next, nb::make_tuple(state.velocity, tensor_object(state.steps)));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
      nb::arg());
}

// --- layouts -----------------------------------------------------------------------------------

void bind_layouts(nb::module_& optimizers) {
  optimizers.def(
      "zero_layout",
      [](const PyTree& params, const std::string& axis) {
        CallerLine line;
        return optim::zero_layout(params, axis);
      },
      nb::arg("params"), nb::arg("axis") = "data",
      "The layout of an optimizer state that is split over one more mesh axis, for the last "
      "argument of init().\n\n"
      "It consists of abstract tensors. Each has the sharding of its parameter, except that the "
      "first dimension that is not split and is a multiple of the axis's size is split over "
      "`axis`; the dimension of the layers in an nn.Layers is not. If there is no such dimension, "
      "or the parameter already uses the axis, the sharding is the parameter's. A step then sums "
      "gradients into parts (a reduce-scatter), computes each part where its state is, and gathers "
      "the new parameters: stage 1 of ZeRO (Rajbhandari et al., 2020).\n\n"
      "Raises InvalidArgumentError for a parameter without a sharding, and NotFoundError for a "
      "mesh without the axis.");
  using Fsdp = optim::Fsdp<PyTree>;
  nb::class_<Fsdp>(
      optimizers, "Fsdp",
      "The shardings of a model's parameters, gradients and optimizer state under fully sharded "
      "data parallelism. Specified once for the whole model; the training step does not change.\n\n"
      "Parameters are split as by zero_layout() over the mesh axis `axis`. `stage` is that of "
      "ZeRO: with 1 the optimizer's state is split, with 2 also the gradients (each device "
      "receives the sum of only its part), with 3 also the parameters (each is gathered where it "
      "is used). Parameters with fewer than `smallest` elements (per layer, in an nn.Layers) are "
      "not split: gathering them costs more than splitting saves.\n\n"
      "    fsdp = optim.Fsdp(params)\n"
      "    params = fsdp.place(params)\n"
      "    state = adam.init(params, fsdp.state_layout)\n\n"
      "    @meshard.jit\n"
      "    def step(params, state, batch):\n"
      "        gradients = fsdp.mark_gradients(grad(loss)(params, batch))\n"
      "        return adam.update(params, gradients, state)\n\n"
      "Raises InvalidArgumentError for a parameter without a sharding, and NotFoundError for a "
      "mesh without the axis.")
      .def(
          "__init__",
          [](Fsdp* self, const PyTree& params, std::string axis, int stage, std::int64_t smallest) {
            CallerLine line;
            if (stage < 1 || stage > 3)
              throw nb::value_error(cat("the stage is 1, 2 or 3, not ", stage).c_str());
            new (self) Fsdp(params, {.axis = std::move(axis),
                                     .stage = static_cast<optim::FsdpStage>(stage),
                                     .smallest = smallest});
          },
          nb::arg("params"), nb::kw_only(), nb::arg("axis") = "data", nb::arg("stage") = 3,
          nb::arg("smallest") = 0)
      .def_prop_ro("axis", [](const Fsdp& self) { return self.options().axis; })
      .def_prop_ro("stage", [](const Fsdp& self) { return static_cast<int>(self.options().stage); })
      .def_prop_ro("smallest", [](const Fsdp& self) { return self.options().smallest; })
      .def_prop_ro(
          "state_layout", [](const Fsdp& self) { return self.state_layout(); },
          "The shardings of the optimizer's state, as abstract tensors: the last argument of "
          "init().")
      .def(
          "place",
          [](const Fsdp& self, const PyTree& params) {
            CallerLine line;
            return unlocked([&] { return self.place(params); });
          },
          nb::arg("params"),
          "The parameters in their sharding between steps: split in stage 3, otherwise unchanged.")
      .def(
          "mark_gradients",
          [](const Fsdp& self, const PyTree& gradients) {
            CallerLine line;
            return unlocked([&] { return self.mark_gradients(gradients); });
          },
          nb::arg("gradients"),
          "The gradients, marked with the sharding in which they are summed: split from stage 2 "
          "on, "
          "otherwise unchanged. Call it in the step, between grad and update.");
}

// --- gradients ---------------------------------------------------------------------------------

void bind_gradients(nb::module_& optimizers) {
  optimizers.def(
      "global_norm",
      [](const PyTree& tensors) {
        CallerLine line;
        return tensor_object(optim::global_norm(tensors));
      },
      nb::arg("tensors"),
      "The square root of the sum of the squares of all elements of all tensors, f32 of rank 0. "
      "For "
      "complex numbers it uses their absolute values.");
  optimizers.def(
      "clip_by_global_norm",
      [](const PyTree& gradients, double limit) {
        CallerLine line;
        auto [clipped, norm] = optim::clip_by_global_norm(gradients, limit);
        return nb::make_tuple(clipped, tensor_object(norm));
      },
      nb::arg("gradients"), nb::arg("limit"),
      "Scales the gradients by limit / norm if their global norm is above the limit. Returns them, "
      "and the norm before scaling (Pascanu, Mikolov and Bengio, 2013). Narrow floats are "
      "multiplied in f32 and rounded once.\n\n"
      "Raises InvalidArgumentError unless the limit is above 0.");
  optimizers.def("accumulated", [](nb::object function, std::int64_t parts, const PyTree& params,
                                   const PyTree& batch) {
    CallerLine line;
    return optim::accumulated(PythonFunction(std::move(function)), parts)(params, batch);
  });
  optimizers.def("init_loss_scale", [](double first) {
    CallerLine line;
    optim::LossScale state = optim::init(optim::LossScaling{.first = first});
    return nb::make_tuple(tensor_object(state.scale), tensor_object(state.held));
  });
  optimizers.def("update_loss_scale", [](double growth, double backoff, double least,
                                         std::int64_t interval, const Operand& scale,
                                         const Operand& held, const Operand& finite) {
    CallerLine line;
    optim::LossScale state =
        optim::update({.growth = growth, .backoff = backoff, .least = least, .interval = interval},
                      {tensor_argument(scale), tensor_argument(held)}, tensor_argument(finite));
    return nb::make_tuple(tensor_object(state.scale), tensor_object(state.held));
  });
  optimizers.def("scaled_loss", [](const Operand& scale, const Operand& loss) {
    CallerLine line;
    return tensor_object(optim::scaled({tensor_argument(scale), {}}, tensor_argument(loss)));
  });
  optimizers.def("unscaled_gradients", [](const Operand& scale, const PyTree& gradients) {
    CallerLine line;
    auto [divided, finite] = optim::unscaled({tensor_argument(scale), {}}, gradients);
    return nb::make_tuple(divided, tensor_object(finite));
  });
  optimizers.def(
      "chosen",
      [](const Operand& condition, const PyTree& yes, const PyTree& no) {
        CallerLine line;
        return optim::chosen(tensor_argument(condition), yes, no);
      },
      nb::arg("condition"), nb::arg("yes"), nb::arg("no"),
      "Selects `yes` if the condition (a bool of rank 0) is true, otherwise `no`, for each tensor "
      "of two equal structures. Use it to skip a step whose gradients were not finite.");
  optimizers.def(
      "cast",
      [](const PyTree& params, DType dtype) {
        CallerLine line;
        return optim::cast(params, dtype);
      },
      nb::arg("params"), nb::arg("dtype"),
      "Converts the floating-point tensors of a structure to another dtype. For example f32 "
      "parameters to bf16, for a model that computes in bf16; their gradients are f32 again.");
}

}  // namespace

void bind_optim(nb::module_& module) {
  nb::module_ optimizers = module.def_submodule("optim", "Optimizers.");
  bind_schedules(optimizers);
  bind_steps(optimizers);
  bind_layouts(optimizers);
  bind_gradients(optimizers);
  bind_optim_transforms(optimizers);
}

}  // namespace meshard::python
