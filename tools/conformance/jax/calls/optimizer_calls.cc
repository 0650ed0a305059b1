// Optimizer steps, one for each gradient after the parameter; and learning rates of schedules.
#include "meshard/optim/optim.h"
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

template <class Optimizer>
Tensors parameter_after_steps(const Optimizer& optimizer, Operands x) {
  Tensor parameter = x[0];
  auto state = optim::init(optimizer, parameter);
  for (const Tensor& gradient : x.subspan(1))
    std::tie(parameter, state) = optim::update(optimizer, parameter, gradient, state);
  return {parameter};
}

optim::AdamForm form_of(const Attributes& at) {
  return at.one_of("form", {"corrected", "efficient"}) == 0 ? optim::AdamForm::kCorrected
                                                            : optim::AdamForm::kEfficient;
}

Tensors adam(Operands x, const Attributes& at) {
  return parameter_after_steps(optim::Adam{.rate = at.number("rate"),
                                           .beta1 = at.number("beta1"),
                                           .beta2 = at.number("beta2"),
                                           .epsilon = at.number("epsilon"),
                                           .form = form_of(at)},
                               x);
}

Tensors adamw(Operands x, const Attributes& at) {
  return parameter_after_steps(optim::AdamW{.rate = at.number("rate"),
                                            .beta1 = at.number("beta1"),
                                            .beta2 = at.number("beta2"),
                                            .epsilon = at.number("epsilon"),
                                            .weight_decay = at.number("weight_decay")},
                               x);
}

Tensors sgd(Operands x, const Attributes& at) {
  return parameter_after_steps(optim::Sgd{.rate = at.number("rate"),
                                          .momentum = at.number("momentum"),
                                          .nesterov = at.flag("nesterov"),
                                          .weight_decay = at.number("weight_decay")},
                               x);
}

Tensor rate_of_step(Operands x, const Attributes& at) {
  double first = at.number("first"), last = at.number("last");
  std::int64_t steps = at.integer("steps");
  switch (at.one_of("kind", {"linear", "cosine", "piecewise", "joined"})) {
    case 0: return optim::linear(first, last, steps)(x[0]);
    case 1: return optim::cosine(first, steps, last)(x[0]);
    case 2: return optim::piecewise({{0, first}, {steps, first / 4}})(x[0]);
    default: return optim::joined(first, steps, optim::linear(first, last, steps))(x[0]);
  }
}

}  // namespace

const CallTable& optimizer_calls() {
  static const CallTable table{
      {"adam", adam},
      {"adamw", adamw},
      {"sgd", sgd},
      {"clip_by_global_norm",
       [](Operands x, const Attributes& at) {
         Tensors gradients(x.begin(), x.end());
         return optim::clip_by_global_norm(gradients, at.number("limit")).first;
       }},
      {"global_norm", one_result([](Operands x, const Attributes&) {
         return optim::global_norm(Tensors(x.begin(), x.end()));
       })},
      {"schedule", one_result(rate_of_step)},
  };
  return table;
}

}  // namespace meshard::conformance
