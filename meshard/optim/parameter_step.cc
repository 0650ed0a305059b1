// Tested in meshard/optim/adam_test.cc.
#include "meshard/optim/parameter_step.h"

#include "meshard/base/error.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"

namespace meshard::optim::internal {
namespace {

bool lies_alike(const Tensor& a, const Tensor& b) {
  std::optional<Sharding> first = a.sharding(), second = b.sharding();
  return first && second && *first == *second;
}

}  // namespace

DType state_dtype(const Tensor& parameter) {
  if (!is_floating(parameter.dtype()))
    throw_invalid(parameter.where(), "[optim] a parameter is ", parameter.type(),
                  ", but only floats can be trained");
  return size_in_bytes(parameter.dtype()) < size_in_bytes(DType::f32) ? DType::f32
                                                                      : parameter.dtype();
}

std::vector<Tensor> zeros_for(std::span<const Tensor> parameters, std::span<const Tensor> layouts,
                              std::size_t copies) {
  std::vector<Tensor> all, to_compute;
  for (std::size_t copy = 0; copy < copies; ++copy)
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor &parameter = parameters[i], &layout = layouts[i];
      if (parameter.shape() != layout.shape())
        throw_invalid(layout.where(), "[optim] the layout of a state is ", layout.type(),
                      ", but its parameter is ", parameter.type());
      Tensor made = laid_out(zeros(parameter.shape(), state_dtype(parameter)), layout);
      if (is_abstract(parameter))
        made = abstract_tensor(made.type(), layout.sharding());
      else
        to_compute.push_back(made);
      all.push_back(std::move(made));
    }
  if (!only_recording() && !to_compute.empty())
    compute(to_compute, effective_source(SourceLocation::current()));
  return all;
}

Tensor no_steps(std::span<const Tensor> parameters) {
  Tensor steps = from_host(HostArray::scalar(std::int32_t{0}));
  for (const Tensor& parameter : parameters) {
    std::optional<Sharding> sharding = parameter.sharding();
    if (!sharding) continue;
    Sharding whole = Sharding::replicated(sharding->mesh(), 0);
    if (is_abstract(parameter)) return abstract_tensor(steps.type(), whole);
    return mark_sharding(steps, whole);
  }
  return steps;
}

Tensor laid_out(const Tensor& value, const Tensor& layout) {
  std::optional<Sharding> sharding = layout.sharding();
  return sharding ? mark_sharding(value, *sharding) : value;
}

Prepared prepared(const Tensor& parameter, const Tensor& gradient) {
  DType dtype = state_dtype(parameter);
  return {astype(parameter, dtype), astype(gradient, dtype)};
}

Prepared prepared(const Tensor& parameter, const Tensor& gradient, const Tensor& state) {
  Prepared out{astype(parameter, state.dtype()), astype(gradient, state.dtype())};
  // A gradient has its parameter's sharding. If the state is split further, take the matching parts
  // of both.
  if (!lies_alike(parameter, state))
    out = {laid_out(out.parameter, state), laid_out(out.gradient, state)};
  return out;
}

}  // namespace meshard::optim::internal
