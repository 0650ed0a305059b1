// Tested in meshard/optim/transform_test.cc.
// Beside optax: python/tests/compare_optax.py.
#include "meshard/optim/adaptive.h"

#include <algorithm>
#include <cmath>

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::optim {
namespace internal {

Tensor mean_correction(double beta, const Tensor& count) {
  return beta == 0 ? ones({}) : -expm1(astype(count, DType::f32) * std::log(beta));
}

Transform adam_direction(const AdamDirection& o) {
  auto initial = [](StepTensors& step) {
    step.add_slot("mean");
    step.add_slot("square");
  };
  auto apply = [o](StepTensors& step) {
    Tensor count = step.steps + 1;
    Tensor first = mean_correction(o.beta1, count), second = mean_correction(o.beta2, count);
    for (std::size_t i = 0; i < step.size(); ++i) {
      const Tensor gradient = step.changes[i];
      Tensor m = o.beta1 * step.slot("mean")[i] + (1 - o.beta1) * gradient;
      Tensor v = o.beta2 * step.slot("square")[i] + (1 - o.beta2) * square(gradient);
      Tensor mean = m / first;
      if (o.nesterov)  // Dozat: Incorporating Nesterov Momentum into Adam, 2016
        mean = o.beta1 * (m / mean_correction(o.beta1, count + 1)) +
               (1 - o.beta1) * (gradient / first);
      step.changes[i] = o.efficient ? sqrt(second) / first * m / (sqrt(v) + o.epsilon)
                                    : mean / (sqrt(v / second + o.epsilon_root) + o.epsilon);
      step.set_slot("mean", i, m);
      step.set_slot("square", i, v);
    }
  };
  return Transform({initial, apply});
}

Transform descent(const Schedule& rate) {
  return Transform({.init = {}, .apply = [rate](StepTensors& step) {
                      Tensor factor = -rate(step.steps);
                      for (Tensor& change : step.changes) change = change * factor;
                    }});
}

Transform in_turn(std::vector<Transform> parts) {
  auto initial = [parts](StepTensors& step) {
    for (const Transform& part : parts)
      if (part.rules().init) part.rules().init(step);
  };
  auto apply = [parts](StepTensors& step) {
    for (const Transform& part : parts) part.rules().apply(step);
  };
  return Transform({initial, apply});
}

namespace {

// The dimensions over which Adafactor keeps means: the largest, and the second largest; of equal
// ones, the last is the larger.
std::optional<std::pair<std::int64_t, std::int64_t>> factored_dimensions(const Adafactor& o,
                                                                         const StepTensors& step,
                                                                         std::size_t i) {
  Dimensions order = step.layer_dimensions(i);
  const Shape& shape = step.parameters[i].shape();
  if (!o.factored || order.size() < 2) return {};
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return shape[a] < shape[b]; });
  std::int64_t largest = order[order.size() - 1], second = order[order.size() - 2];
  if (shape[second] < o.smallest_factored) return {};
  return std::pair(largest, second);
}

void add_without(StepTensors& step, const std::string& name, std::size_t i, std::int64_t without) {
  Dimensions sizes, like;
  for (std::int64_t d = 0; d < step.parameters[i].rank(); ++d)
    if (d != without) {
      sizes.push_back(step.parameters[i].dim(d));
      like.push_back(d);
    }
  step.add_slot(name, i, sizes, like);
}

// The gradient over the root of the product of the means of rows and columns, or of the squares.
Tensor factored_direction(const Adafactor& o, StepTensors& step, std::size_t i,
                          const Tensor& decay) {
  const Tensor& gradient = step.changes[i];
  Tensor squares = square(gradient) + o.epsilon;
  auto after = [&](const Tensor& before, const Tensor& now) {
    return astype(decay * before + (1 - decay) * now, before.dtype());
  };
  auto dimensions = factored_dimensions(o, step, i);
  if (!dimensions) {
    Tensor v = after(step.slot("square")[i], squares);
    step.set_slot("square", i, v);
    return gradient / sqrt(v);
  }
  auto [largest, second] = *dimensions;
  Tensor row = after(step.slot("row")[i], mean(squares, largest));
  Tensor column = after(step.slot("column")[i], mean(squares, second));
  step.set_slot("row", i, row);
  step.set_slot("column", i, column);
  Tensor rows = expand_dims(row, largest), columns = expand_dims(column, second);
  return gradient * rsqrt(rows / mean(rows, second, true)) * rsqrt(columns);
}

Transform factored_descent(const Adafactor& o) {
  auto initial = [o](StepTensors& step) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (auto dimensions = factored_dimensions(o, step, i)) {
        add_without(step, "row", i, dimensions->first);
        add_without(step, "column", i, dimensions->second);
      } else {
        add_without(step, "square", i, -1);
      }
    }
  };
  auto apply = [o](StepTensors& step) {
    Tensor decay = 1 - pow(astype(step.steps + 1, DType::f32), -o.decay);
    for (std::size_t i = 0; i < step.size(); ++i)
      step.changes[i] = factored_direction(o, step, i, decay);
  };
  return Transform({initial, apply});
}

// Multiplied by the root mean square of the parameter.
Transform relative_to_parameters() {
  return Transform({.init = {}, .apply = [](StepTensors& step) {
                      for (std::size_t i = 0; i < step.size(); ++i) {
                        Tensor size =
                            sqrt(mean(square(step.parameters[i]), step.layer_dimensions(i), true));
                        step.changes[i] = step.changes[i] * maximum(size, 1e-3);
                      }
                    }});
}

// A running mean of the changes, which starts at zero and is not corrected.
Transform running_mean(double decay) {
  return Transform({[](StepTensors& step) { step.add_slot("velocity"); },
                    [decay](StepTensors& step) {
                      for (std::size_t i = 0; i < step.size(); ++i) {
                        step.changes[i] =
                            decay * step.slot("velocity")[i] + (1 - decay) * step.changes[i];
                        step.set_slot("velocity", i, step.changes[i]);
                      }
                    }});
}

// Scaled to the norm of the parameter.
Transform trust_ratio() {
  return Transform({.init = {}, .apply = [](StepTensors& step) {
                      for (std::size_t i = 0; i < step.size(); ++i) {
                        Dimensions all = step.layer_dimensions(i);
                        Tensor change = step.changes[i];
                        Tensor whole = sqrt(sum(square(step.parameters[i]), all, true));
                        Tensor size = sqrt(sum(square(change), all, true));
                        Tensor none = logical_or(equal(whole, 0), equal(size, 0));
                        step.changes[i] =
                            change * where(none, ones_like(whole), whole / where(none, 1, size));
                      }
                    }});
}

void rms_direction(const RmsProp& o, StepTensors& step) {
  Tensor correction = mean_correction(o.decay, step.steps + 1);
  for (std::size_t i = 0; i < step.size(); ++i) {
    const Tensor gradient = step.changes[i];
    Tensor v = o.decay * step.slot("square")[i] + (1 - o.decay) * square(gradient);
    step.set_slot("square", i, v);
    if (o.corrected) v = v / correction;
    if (o.centered) {
      Tensor m = o.decay * step.slot("mean")[i] + (1 - o.decay) * gradient;
      step.set_slot("mean", i, m);
      if (o.corrected) m = m / correction;
      v = v - square(m);
    }
    step.changes[i] =
        o.epsilon_inside ? rsqrt(v + o.epsilon) * gradient : gradient / (sqrt(v) + o.epsilon);
  }
}

}  // namespace
}  // namespace internal

using internal::StepTensors;

Transform::Transform(const Sgd& sgd)
    : Transform(internal::in_turn(
          sgd.momentum == 0 ? std::vector<Transform>{Decay{sgd.weight_decay, sgd.decay_rank},
                                                     internal::descent(sgd.rate)}
                            : std::vector<Transform>{Decay{sgd.weight_decay, sgd.decay_rank},
                                                     Momentum{sgd.momentum, sgd.nesterov},
                                                     internal::descent(sgd.rate)})) {}

Transform::Transform(const Adam& adam) : Transform(internal::with_decay(adam)) {}

Transform::Transform(const AdamW& adam)
    : Transform(internal::in_turn(
          {internal::adam_direction(
               {adam.beta1, adam.beta2, adam.epsilon, 0, false, adam.form == AdamForm::kEfficient}),
           Decay{adam.weight_decay, adam.decay_rank}, internal::descent(adam.rate)})) {}

Lion::operator Transform() const {
  auto initial = [](StepTensors& step) { step.add_slot("mean"); };
  auto apply = [b1 = beta1, b2 = beta2](StepTensors& step) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      const Tensor gradient = step.changes[i], mean = step.slot("mean")[i];
      step.changes[i] = sign((1 - b1) * gradient + b1 * mean);
      step.set_slot("mean", i, b2 * mean + (1 - b2) * gradient);
    }
  };
  return internal::in_turn(
      {Transform({initial, apply}), Decay{weight_decay, decay_rank}, internal::descent(rate)});
}

Lamb::operator Transform() const {
  return internal::in_turn(
      {internal::adam_direction({beta1, beta2, epsilon, epsilon_root, false, false}),
       Decay{weight_decay, decay_rank}, internal::trust_ratio(), internal::descent(rate)});
}

RmsProp::operator Transform() const {
  auto initial = [self = *this](StepTensors& step) {
    step.add_slot("square", self.first);
    if (self.centered) step.add_slot("mean");
  };
  auto apply = [self = *this](StepTensors& step) { internal::rms_direction(self, step); };
  std::vector<Transform> parts{Transform({initial, apply}), internal::descent(rate)};
  if (momentum != 0) parts.push_back(Momentum{momentum, nesterov});
  return internal::in_turn(std::move(parts));
}

Adagrad::operator Transform() const {
  auto initial = [first = first](StepTensors& step) { step.add_slot("square", first); };
  auto apply = [epsilon = epsilon](StepTensors& step) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      Tensor& change = step.changes[i];
      Tensor total = square(change) + step.slot("square")[i];
      change = where(total > 0, rsqrt(total + epsilon), zeros_like(total)) * change;
      step.set_slot("square", i, total);
    }
  };
  return internal::in_turn({Transform({initial, apply}), internal::descent(rate)});
}

Adafactor::operator Transform() const {
  std::vector<Transform> parts{internal::factored_descent(*this)};
  if (clip != 0) parts.push_back(ClipByBlock{clip});
  parts.push_back(Scale{rate});
  if (relative) parts.push_back(internal::relative_to_parameters());
  if (momentum != 0) parts.push_back(internal::running_mean(momentum));
  parts.push_back(Decay{weight_decay, decay_rank});
  parts.push_back(Scale{-1.0});
  return internal::in_turn(std::move(parts));
}

}  // namespace meshard::optim
