#include "meshard/autodiff/jvp.h"

#include "meshard/autodiff/backward.h"
#include "meshard/autodiff/manual_cotangent.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

// A placeholder cotangent for `output`; the tangents do not depend on its value.
Tensor seed_of(const Tensor& output, SourceLocation where) {
  Tensor any = cotangent_like(output.value(), zeros(output.shape(), output.dtype()));
  Tensor seed = internal::differentiation_input(any, "a result", where);
  std::optional<Sharding> sharding = output.sharding();
  return sharding ? sharding_constraint(seed, *sharding) : seed;
}

}  // namespace

PushForward::PushForward(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         SourceLocation where)
    : outputs_(outputs.begin(), outputs.end()) {
  internal::InheritSource line(where);
  std::vector<Tensor> floating;
  for (const Tensor& input : inputs) types_.push_back(input.type(where));
  for (const Tensor& output : outputs)
    if (is_inexact(output.dtype(where))) {
      floating.push_back(output);
      seeds_.push_back(seed_of(output, where));
    }
  pulled_ = backward(floating, seeds_, inputs, where);
}

std::vector<Tensor> PushForward::operator()(std::span<const Tensor> tangents,
                                            SourceLocation where) const {
  if (tangents.size() != types_.size())
    throw_invalid(where, "[jvp] ", tangents.size(), " tangents are given for ", types_.size(),
                  " tensors");
  std::vector<Tensor> used, along;
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (!tangents[i].defined()) continue;
    if (tangents[i].type() != types_[i])
      throw_invalid(where, "[jvp] tangent ", i, " is ", tangents[i].type(), ", but its primal is ",
                    types_[i]);
    used.push_back(pulled_[i]);
    along.push_back(tangents[i]);
  }
  internal::InheritSource line(where);
  std::vector<Tensor> pushed = backward(used, along, seeds_, where), all;
  auto next = pushed.begin();
  for (const Tensor& output : outputs_)
    all.push_back(is_inexact(output.dtype()) ? *next++ : zeros(output.shape(), output.dtype()));
  return all;
}

}  // namespace meshard
