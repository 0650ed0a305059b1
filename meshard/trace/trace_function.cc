// Tested in meshard/trace/jit_test.cc.
#include "meshard/trace/trace_function.h"

#include <optional>

#include "meshard/graph/effects.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/rolling/roll_layers.h"

namespace meshard::internal {

bool is_default_number(const Scalar& number) {
  switch (number.kind) {
    case ScalarKind::kBool: return true;
    case ScalarKind::kInteger:
      return !number.is_above_i64 && number.integer == static_cast<std::int32_t>(number.integer);
    case ScalarKind::kFloat: {
      const double size = number.floating < 0 ? -number.floating : number.floating;
      return !(size > float_limits(kDefaultFloat).max) || size - size != 0;  // infinities fit
    }
  }
  return true;
}

Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where) {
  DType dtype = number.kind == ScalarKind::kBool    ? DType::bool_
                : number.kind == ScalarKind::kFloat ? DType::f64
                : number.is_above_i64               ? DType::u64
                                                    : DType::i64;
  try {
    return from_host(scalar_array(number, dtype, where), {});
  } catch (const Error& error) {
    throw error.with_note(
        cat("it is argument ", position, " of a call of the function jitted here"));
  }
}

Tensor number_inside(const Scalar& number, const Tensor& wide) {
  return is_default_number(number) ? weak_number(wide) : large_number(wide);
}

Graph trace_function(std::span<const Tensor* const> arguments,
                     FunctionRef<std::vector<Tensor>(std::span<const Tensor> parameters)> tracer,
                     SourceLocation where) {
  const ForbidCollectives* forbidden = recorder().forbidden;
  TraceScope scope;
  recorder().forbidden = forbidden;
  std::vector<Tensor> parameters;
  std::vector<Value> parameter_values, result_values;
  for (const Tensor* argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument->value());
    parameters.push_back(make_parameter(argument->value().type(),
                                        sharding ? std::optional(*sharding) : std::nullopt,
                                        argument->value()->where()));
    if (is_unplaced(argument->value())) parameters.back().value()->set_unplaced();
    parameter_values.push_back(parameters.back().value());
  }
  EffectScope effects;
  UnrolledLayersScope unrolled;
  RollingScope rolling;
  std::vector<Tensor> results = rolling.rolled(tracer(parameters));
  effects.attach(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined())
      throw_invalid(where, "[jit] tensor ", i, " of the function's result has no value");
    result_values.push_back(results[i].value());
  }
  return Graph::build(parameter_values, result_values, scope.trace(), unrolled.found());
}

std::vector<std::uint32_t> donated_parameters(const std::vector<std::size_t>& donate,
                                              const std::vector<std::size_t>& leaves,
                                              SourceLocation where) {
  std::vector<std::uint32_t> donated;
  for (std::size_t position : donate) {
    if (position >= leaves.size())
      throw_invalid(where, "[jit] cannot donate argument ", position,
                    ": the number of arguments is ", leaves.size());
    std::size_t first = 0;
    for (std::size_t i = 0; i < position; ++i) first += leaves[i];
    for (std::size_t i = 0; i < leaves[position]; ++i)
      donated.push_back(static_cast<std::uint32_t>(first + i));
  }
  return donated;
}

}  // namespace meshard::internal
