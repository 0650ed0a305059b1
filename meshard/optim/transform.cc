#include "meshard/optim/transform.h"

#include <algorithm>

#include "meshard/base/error.h"
#include "meshard/base/near_names.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/optim/gradients.h"

namespace meshard::optim {
namespace internal {
namespace {

// What a parameter without a tensor in a slot has there.
Tensor empty_slot(const Tensor& parameter) {
  Tensor empty = zeros({0});
  std::optional<Sharding> sharding = parameter.sharding();
  return sharding ? mark_sharding(empty, Sharding::replicated(sharding->mesh(), 1)) : empty;
}

std::string listed_names(const std::map<std::string, std::vector<Tensor>>& slots) {
  std::string text;
  for (const auto& each : slots) text += cat(text.empty() ? "" : ", ", '"', each.first, '"');
  return text.empty() ? "none" : text;
}

// The sharding of some of the dimensions of a tensor.
std::optional<Sharding> sharding_of(const Tensor& layout, const Dimensions& like) {
  std::optional<Sharding> sharding = layout.sharding();
  if (!sharding) return sharding;
  std::vector<DimensionSpec> dimensions;
  for (std::int64_t d : like)
    dimensions.push_back(d < 0 || d >= static_cast<std::int64_t>(sharding->rank())
                             ? DimensionSpec()
                             : sharding->spec()[static_cast<std::size_t>(d)]);
  return Sharding(sharding->mesh(), PartitionSpec(std::move(dimensions)));
}

// The bf16 neighbor of `x`, f32, above or below, with the probability of its distance.
Tensor rounded_at_random(const Tensor& x, const Tensor& key) {
  Tensor bits = bitcast_convert(x, DType::u32);
  Tensor below = bitwise_and(random::bits(key, x.shape()), 0xFFFF);
  Tensor kept = bitwise_and(bits + below, std::uint32_t{0xFFFF0000});
  return where(isfinite(x), bitcast_convert(kept, DType::f32), x);
}

void check_bf16(const StepTensors& step) {
  for (std::size_t i = 0; i < step.size(); ++i) {
    DType dtype = step.parameters[i].dtype();
    if (dtype != DType::bf16 && dtype != state_dtype(step.parameters[i]))
      throw_invalid(step.parameters[i].where(), "[optim.StochasticRounding] the parameter \"",
                    step.names[i], "\" is ", step.parameters[i].type(),
                    ", but only bf16 is rounded at random");
  }
}

}  // namespace

std::string parameter_name(std::string_view path) {
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '[') {
      name += path[i];
      continue;
    }
    bool quoted = path.substr(i + 1).starts_with('"');
    std::size_t begin = i + (quoted ? 2 : 1);
    std::size_t end = std::min(path.find(quoted ? "\"]" : "]", begin), path.size());
    std::string_view inside = path.substr(begin, end - begin);
    name += cat(".", !quoted && inside == ":" ? "*" : inside);
    i = end + (quoted ? 1 : 0);
  }
  if (name.starts_with('.')) name.erase(0, 1);
  return name.empty() ? "value" : name;
}

Dimensions StepTensors::layer_sizes(std::size_t parameter) const {
  Dimensions sizes;
  for (std::int64_t d : layer_dimensions(parameter)) sizes.push_back(parameters[parameter].dim(d));
  return sizes;
}

Dimensions StepTensors::layer_dimensions(std::size_t parameter) const {
  Dimensions dimensions;
  for (auto d = static_cast<std::int64_t>(stacked[parameter]); d < parameters[parameter].rank();
       ++d)
    dimensions.push_back(d);
  return dimensions;
}

void StepTensors::add_slot(const std::string& name, double value) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (parameters[i].shape() != layouts[i].shape())
      throw_invalid(layouts[i].where(), "[optim] the layout of a state is ", layouts[i].type(),
                    ", but its parameter is ", parameters[i].type());
    Dimensions all;
    for (std::int64_t d = 0; d < parameters[i].rank(); ++d) all.push_back(d);
    add_slot(name, i, parameters[i].shape().sizes(), all, value);
  }
}

void StepTensors::add_slot(const std::string& name, std::size_t parameter, const Dimensions& sizes,
                           const Dimensions& like, double value) {
  std::vector<Tensor>& slot = slots[prefix + name];
  if (slot.empty())
    for (const Tensor& each : parameters) slot.push_back(empty_slot(each));
  Tensor made = full(Shape(sizes), value, state_dtype(parameters[parameter]));
  if (std::optional<Sharding> sharding = sharding_of(layouts[parameter], like))
    made = mark_sharding(made, *sharding);
  slot[parameter] = std::move(made);
}

void StepTensors::set_slot(const std::string& name, std::size_t parameter, Tensor value) {
  Tensor& before = slot(name)[parameter];
  before = laid_out(value, before);
}

void StepTensors::add_number(const std::string& name, HostArray value) {
  numbers[prefix + name] = laid_out(from_host(std::move(value)), no_steps(parameters));
}

std::vector<Tensor>& StepTensors::slot(const std::string& name) {
  auto found = slots.find(prefix + name);
  if (found == slots.end())
    throw_invalid(SourceLocation{}, "[optim.update] the state has no \"", prefix + name,
                  "\", only ", listed_names(slots),
                  ": create the state with init() of the same optimizer");
  return found->second;
}

Tensor& StepTensors::number(const std::string& name) {
  auto found = numbers.find(prefix + name);
  if (found == numbers.end())
    throw_invalid(SourceLocation{}, "[optim.update] the state has no number \"", prefix + name,
                  "\": create the state with init() of the same optimizer");
  return found->second;
}

StepTensors made_state(const Transform& transform, StepTensors empty) {
  for (const Tensor& each : empty.parameters) (void)state_dtype(each);  // only floats
  empty.steps = no_steps(empty.parameters);
  if (transform.rules().init) transform.rules().init(empty);
  std::vector<Tensor> to_compute;
  for (auto& [name, slot] : empty.slots)
    for (std::size_t i = 0; i < slot.size(); ++i) {
      if (is_abstract(empty.parameters[i]))
        slot[i] = abstract_tensor(slot[i].type(), slot[i].sharding());
      else
        to_compute.push_back(slot[i]);
    }
  if (!only_recording() && !to_compute.empty())
    compute(to_compute, effective_source(SourceLocation::current()));
  return empty;
}

std::vector<Tensor> take_step(const Transform& transform, StepTensors& step) {
  const std::vector<Tensor> before = step.parameters;
  step.rounding.resize(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    // Computed where the state is: in the sharding of the first slot in the parameter's shape.
    const Tensor* state = nullptr;
    for (const auto& each : step.slots)
      if (!state && each.second[i].shape() == before[i].shape()) state = &each.second[i];
    Prepared tensors =
        state ? prepared(before[i], step.changes[i], *state) : prepared(before[i], step.changes[i]);
    step.parameters[i] = tensors.parameter;
    step.changes[i] = tensors.gradient;
  }
  transform.rules().apply(step);
  step.steps = laid_out(step.steps + 1, step.steps);
  std::vector<Tensor> next;
  for (std::size_t i = 0; i < before.size(); ++i) {
    Tensor value = step.parameters[i] + step.changes[i];
    if (step.rounding[i] && before[i].dtype() == DType::bf16)
      value = rounded_at_random(value, random::fold_in(*step.rounding[i], i));
    next.push_back(laid_out(astype(value, before[i].dtype()), before[i]));
  }
  return next;
}

}  // namespace internal

namespace {

using internal::StepTensors;

// Calls a rule of another transform whose slots and numbers begin with `prefix`.
void call_inner(const std::function<void(StepTensors&)>& rule, StepTensors& step,
                const std::string& prefix) {
  if (!rule) return;
  std::string outer = step.prefix;
  step.prefix += prefix;
  rule(step);
  step.prefix = std::move(outer);
}

// A step of `inner` if the condition is true; otherwise no change of anything.
void apply_if(const Tensor& condition, const Transform& inner, StepTensors& step) {
  const auto slots = step.slots;
  const auto numbers = step.numbers;
  call_inner(inner.rules().apply, step, "inner.");
  for (Tensor& change : step.changes) change = where(condition, change, zeros_like(change));
  for (auto& [name, slot] : step.slots)
    for (std::size_t i = 0; i < slot.size(); ++i)
      if (slot[i].value() != slots.at(name)[i].value())
        slot[i] =
            internal::laid_out(where(condition, slot[i], slots.at(name)[i]), slots.at(name)[i]);
  for (auto& [name, number] : step.numbers)
    if (number.value() != numbers.at(name).value())
      number = where(condition, number, numbers.at(name));
}

void check_above(const char* place, const char* option, double value, double least) {
  if (!(value > least))
    throw_invalid(SourceLocation{}, "[optim.", place, "] ", option, " must be above ", least,
                  ", not ", value);
}

// For each group, the positions of its parameters.
std::vector<std::vector<std::size_t>> members(const Groups& options,
                                              const std::vector<std::string>& names) {
  std::vector<std::vector<std::size_t>> all(options.groups.size());
  std::string without;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::size_t g = 0;
    while (g < all.size() && !matches_name(options.groups[g].first, names[i])) ++g;
    if (g < all.size())
      all[g].push_back(i);
    else
      without += cat(without.empty() ? "" : ", ", '"', names[i], '"');
  }
  for (std::size_t g = 0; g < all.size(); ++g)
    if (all[g].empty() && !names.empty()) {
      const std::string& pattern = options.groups[g].first;
      bool matches = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return matches_name(pattern, name);
      });
      throw Error(ErrorCode::kNotFound,
                  cat("[optim.Groups] the pattern \"", pattern, "\" ",
                      matches ? "is the first match of no parameter: those that it matches also "
                                "match a pattern before it"
                              : cat("matches no parameter; ", nearest_text(pattern, names))),
                  effective_source({}));
    }
  if (!without.empty())
    throw_invalid(SourceLocation{}, "[optim.Groups] no pattern matches ", without,
                  ": add {\"*\", ...} for the others, with Freeze to leave them unchanged");
  return all;
}

template <class T>
std::vector<T> chosen_of(const std::vector<T>& all, const std::vector<std::size_t>& positions) {
  std::vector<T> out;
  if (!all.empty())
    for (std::size_t i : positions) out.push_back(all[i]);
  return out;
}

// The tensors of one group.
StepTensors part_of(const StepTensors& step, const std::vector<std::size_t>& positions) {
  StepTensors part{.names = chosen_of(step.names, positions),
                   .parameters = chosen_of(step.parameters, positions),
                   .layouts = chosen_of(step.layouts, positions),
                   .changes = chosen_of(step.changes, positions),
                   .stacked = chosen_of(step.stacked, positions),
                   .rounding = chosen_of(step.rounding, positions),
                   .steps = step.steps,
                   .numbers = step.numbers,
                   .prefix = step.prefix};
  for (const auto& [name, slot] : step.slots) part.slots[name] = chosen_of(slot, positions);
  return part;
}

// Puts the tensors of a group back.
void merge(StepTensors& step, const std::vector<std::size_t>& positions, StepTensors part) {
  for (std::size_t k = 0; k < positions.size(); ++k) {
    if (!step.changes.empty()) step.changes[positions[k]] = part.changes[k];
    if (!step.rounding.empty()) step.rounding[positions[k]] = part.rounding[k];
  }
  for (const auto& [name, slot] : part.slots) {
    std::vector<Tensor>& whole = step.slots[name];
    if (whole.empty())
      for (const Tensor& each : step.parameters) whole.push_back(internal::empty_slot(each));
    for (std::size_t k = 0; k < positions.size(); ++k) whole[positions[k]] = slot[k];
  }
  step.numbers = std::move(part.numbers);
}

// Calls the rule of each transform with the tensors of its parameters.
void call_parts(const std::vector<std::vector<std::size_t>>& all,
                const std::vector<Transform>& transforms, StepTensors& step, bool is_init) {
  for (std::size_t g = 0; g < all.size(); ++g) {
    const internal::TransformRules& rules = transforms[g].rules();
    const std::function<void(StepTensors&)>& rule = is_init ? rules.init : rules.apply;
    if (!rule || all[g].empty()) continue;
    StepTensors part = part_of(step, all[g]);
    // They share slots, but each has its own numbers.
    std::string mark = cat(step.prefix, "group ", g, ".");
    std::map<std::string, Tensor> numbers;
    for (const auto& [name, number] : step.numbers)
      if (name.starts_with(mark)) numbers.emplace(name.substr(mark.size()), number);
    part.numbers = std::move(numbers);
    rule(part);
    numbers = step.numbers;
    for (const auto& [name, number] : part.numbers) numbers[mark + name] = number;
    part.numbers = std::move(numbers);
    merge(step, all[g], std::move(part));
  }
}

void call_groups(const Groups& options, StepTensors& step, bool is_init) {
  std::vector<Transform> transforms;
  for (const auto& each : options.groups) transforms.push_back(each.second);
  call_parts(members(options, step.names), transforms, step, is_init);
}

template <class F>
Transform of_changes(F change) {
  return Transform({.init = {}, .apply = [change](StepTensors& step) {
                      for (std::size_t i = 0; i < step.size(); ++i)
                        step.changes[i] = change(step, i);
                    }});
}

}  // namespace

Transform internal::by_rank(std::int64_t rank, Transform of_rank, Transform of_others) {
  auto call = [rank, both = std::vector{std::move(of_rank), std::move(of_others)}](
                  StepTensors& step, bool is_init) {
    std::vector<std::vector<std::size_t>> parts(2);
    for (std::size_t i = 0; i < step.size(); ++i) {
      auto layer_rank = step.parameters[i].rank() - static_cast<std::int64_t>(step.stacked[i]);
      parts[layer_rank == rank ? 0 : 1].push_back(i);
    }
    call_parts(parts, both, step, is_init);
  };
  return Transform({[call](StepTensors& step) { call(step, true); },
                    [call](StepTensors& step) { call(step, false); }});
}

Chain::operator Transform() const {
  auto call = [links = links](StepTensors& step, bool is_init) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      const internal::TransformRules& rules = links[i].rules();
      call_inner(is_init ? rules.init : rules.apply, step, cat(i, "."));
    }
  };
  return Transform({[call](StepTensors& step) { call(step, true); },
                    [call](StepTensors& step) { call(step, false); }});
}

Groups::operator Transform() const {
  return Transform({[self = *this](StepTensors& step) { call_groups(self, step, true); },
                    [self = *this](StepTensors& step) { call_groups(self, step, false); }});
}

Freeze::operator Transform() const {
  return of_changes([](StepTensors& step, std::size_t i) { return zeros_like(step.changes[i]); });
}

Scale::operator Transform() const {
  return Transform({.init = {}, .apply = [by = by](StepTensors& step) {
                      Tensor factor = by(step.steps);
                      for (Tensor& change : step.changes) change = change * factor;
                    }});
}

Decay::operator Transform() const {
  return of_changes([self = *this](StepTensors& step, std::size_t i) {
    return internal::decays(step.parameters[i], step.stacked[i], self.by, self.decay_rank)
               ? step.changes[i] + self.by * step.parameters[i]
               : step.changes[i];
  });
}

Momentum::operator Transform() const {
  return Transform({[](StepTensors& step) { step.add_slot("velocity"); },
                    [self = *this](StepTensors& step) {
                      for (std::size_t i = 0; i < step.size(); ++i) {
                        Tensor& change = step.changes[i];
                        Tensor velocity = self.momentum * step.slot("velocity")[i] + change;
                        change = self.nesterov ? change + self.momentum * velocity : velocity;
                        step.set_slot("velocity", i, velocity);
                      }
                    }});
}

ClipByValue::operator Transform() const {
  return of_changes([limit = limit](StepTensors& step, std::size_t i) {
    check_above("ClipByValue", "the limit", limit, 0);
    return clip(step.changes[i], -limit, limit);
  });
}

ClipByBlock::operator Transform() const {
  return of_changes([limit = limit](StepTensors& step, std::size_t i) {
    check_above("ClipByBlock", "the limit", limit, 0);
    const Tensor& change = step.changes[i];
    Tensor size = sqrt(mean(square(change), step.layer_dimensions(i), true));
    return change / maximum(size / limit, 1);
  });
}

ClipByGlobalNorm::operator Transform() const {
  return Transform({.init = {}, .apply = [limit = limit](StepTensors& step) {
                      Tensor norm = internal::norm_of(step.changes);
                      step.changes = internal::scaled_to(step.changes, norm, limit);
                    }});
}

ApplyIfFinite::operator Transform() const {
  auto initial = [inner = inner](StepTensors& step) {
    for (const char* name : {"in_a_row", "total", "taken"})
      step.add_number(name, HostArray::scalar(std::int32_t{0}));
    call_inner(inner.rules().init, step, "inner.");
  };
  auto apply = [self = *this](StepTensors& step) {
    Tensor finite = internal::all_finite(step.changes);
    Tensor in_a_row = where(finite, 0, step.number("in_a_row") + 1);
    Tensor takes = logical_or(finite, in_a_row > self.most);
    Tensor outer = step.steps, taken = step.number("taken");
    step.steps = taken;
    apply_if(takes, self.inner, step);
    step.steps = outer;
    step.number("taken") = where(takes, taken + 1, taken);
    step.number("total") = step.number("total") + where(finite, 0, 1);
    step.number("in_a_row") = in_a_row;
  };
  return Transform({initial, apply});
}

MultiSteps::operator Transform() const {
  auto initial = [self = *this](StepTensors& step) {
    check_above("MultiSteps", "`every`", static_cast<double>(self.every), 0);
    step.add_slot("accumulated");
    call_inner(self.inner.rules().init, step, "inner.");
  };
  auto apply = [self = *this](StepTensors& step) {
    Tensor outer = step.steps, part = outer % self.every;
    std::vector<Tensor> sums;
    for (std::size_t i = 0; i < step.size(); ++i) {
      const Tensor& before = step.slot("accumulated")[i];
      Tensor& change = step.changes[i];
      // Welford's mean, which does not overflow.
      change = self.mean ? before + (change - before) / (astype(part, change.dtype()) + 1)
                         : before + change;
      sums.push_back(change);
    }
    Tensor takes = equal(part, self.every - 1);
    step.steps = floor_divide(outer, self.every);
    apply_if(takes, self.inner, step);
    step.steps = outer;
    for (std::size_t i = 0; i < step.size(); ++i)
      step.set_slot("accumulated", i, where(takes, zeros_like(sums[i]), sums[i]));
  };
  return Transform({initial, apply});
}

StochasticRounding::operator Transform() const {
  return Transform({internal::check_bf16, [seed = seed](StepTensors& step) {
                      Tensor key = random::fold_in(random::key(seed), step.steps);
                      for (std::optional<Tensor>& each : step.rounding) each = key;
                    }});
}

}  // namespace meshard::optim
