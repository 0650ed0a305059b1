#include "meshard/ops/pure_callback.h"

#include <mutex>
#include <utility>

#include "meshard/graph/effects.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/host_call.h"

namespace meshard {
extern const OpDef pure_callback_op;
namespace {

struct Functions {
  std::mutex mutex;
  std::vector<std::shared_ptr<const HostFunction>> all;  // guarded by mutex
};

// Never destroyed: programs may run while static objects are destroyed.
Functions& functions() {
  static auto* instance = new Functions;
  return *instance;
}

std::int64_t keep(HostFunction function) {
  auto shared = std::make_shared<const HostFunction>(std::move(function));
  std::lock_guard lock(functions().mutex);
  functions().all.push_back(std::move(shared));
  return std::ssize(functions().all) - 1;
}

std::shared_ptr<const HostFunction> function_of(std::int64_t number) {
  std::lock_guard lock(functions().mutex);
  if (number < 0 || number >= std::ssize(functions().all)) return nullptr;
  return functions().all[static_cast<std::size_t>(number)];
}

std::vector<HostArray> checked(const HostFunction& function, std::span<const HostArray> arguments,
                               std::span<const TensorType> types) {
  std::vector<HostArray> results = function(arguments);
  if (results.size() != types.size())
    throw_invalid({}, "[pure_callback] the function returned ", results.size(),
                  " arrays, but the number of result types is ", types.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    if (results[i].type() != types[i])
      throw_invalid({}, "[pure_callback] result ", i, " of the function is ", results[i].type(),
                    ", not ", types[i]);
  return results;
}

void infer_pure_callback(const OpCall& call, ResultTypes& results) {
  add_named_types(call, call.as<PureCallbackAttributes>().results, results);
}

std::vector<Tensor> record_pure_callback(std::int64_t function,
                                         const std::vector<Tensor>& arguments,
                                         const std::vector<TensorType>& results,
                                         SourceLocation where) {
  return record_all(pure_callback_op,
                    make_attributes(PureCallbackAttributes{function, join(results, " ")}),
                    arguments, where);
}

}  // namespace

extern constinit const OpDef pure_callback_op = {
    .name = "pure_callback",
    .operands = "tensors...",
    .doc = "The results of a C++ function of this process, called with the values of the operands.",
    .example =
        "pure_callback([](std::span<const HostArray> a) { return std::vector{a[0]}; }, {x}, "
        "{x.type()})[0]",
    .infer = infer_pure_callback,
    // The function may compute any element from any other.
    .sharding_rule = whole_rule,
    .emit = emit_host_call,
    .vjp = kNotDifferentiable,
    .batch = batch_one_by_one,
    .parse_attributes = parse_attributes<PureCallbackAttributes>,
};

std::vector<Tensor> pure_callback(HostFunction function, const std::vector<Tensor>& arguments,
                                  const std::vector<TensorType>& results, SourceLocation where) {
  SourceScope line(where);
  where = effective_source(where);
  if (results.empty()) throw_invalid(where, "[pure_callback] requires at least one result type");
  if (!only_recording() && !internal::EffectScope::current()) {
    std::vector<HostArray> given;
    for (const Tensor& argument : arguments) given.push_back(argument.to_host(where));
    std::vector<Tensor> tensors;
    for (HostArray& array : checked(function, given, results))
      tensors.push_back(from_host(std::move(array), where));
    return tensors;
  }
  return record_pure_callback(keep(std::move(function)), arguments, results, where);
}

std::vector<HostArray> internal::call_host_function(std::int64_t number,
                                                    std::span<const HostArray> arguments,
                                                    std::span<const TensorType> types) {
  std::shared_ptr<const HostFunction> function = function_of(number);
  if (!function)
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[pure_callback] this process has no function number ", number,
                    ": the program was made in another one"));
  return checked(*function, arguments, types);
}

}  // namespace meshard
