#include "meshard/autodiff/custom_vjp.h"

#include "meshard/autodiff/grad.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/batched_program.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

// The pullback cannot be printed or hashed, so only the counts are. The program computes the same
// results with any pullback.
class CustomAttributes final : public Attributes {
 public:
  CustomAttributes(std::size_t results, std::size_t arguments, internal::Pullback function)
      : num_results(results), num_arguments(arguments), pullback(std::move(function)) {}

  const std::type_info& type() const override { return typeid(CustomAttributes); }
  std::unique_ptr<const Attributes> clone() const override {
    return std::make_unique<CustomAttributes>(*this);
  }
  void print(std::string& out) const override { append(out, cat("results=", num_results)); }
  void append_key(std::string& out) const override { append(out, cat(num_results, ';')); }

  std::size_t num_results, num_arguments;
  internal::Pullback pullback;
};

const CustomAttributes& attributes_of(const Attributes* attributes) {
  return *static_cast<const CustomAttributes*>(attributes);
}

// Operands: the results, the arguments, the residuals. The results are passed through; the others
// are only used by the derivative.
ShardingRule custom_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    TensorFactors factors;
    for (std::int64_t size : call.operand(i).shape) factors.push_back({builder.factor(size)});
    builder.operand(factors);
    if (i < call.results.size()) builder.result(std::move(factors));
  }
  return builder.build();
}

void custom_vjp_of(const VjpCall& call, std::span<Tensor> out) {
  const CustomAttributes& custom = attributes_of(call.node.attributes());
  std::vector<Tensor> cotangents(call.cotangents.begin(), call.cotangents.end());
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    if (!cotangents[i].defined())
      cotangents[i] = zeros(call.results[i].shape(), call.results[i].dtype());
  std::size_t first = custom.num_results, end = first + custom.num_arguments;
  std::vector<Tensor> wanted = custom.pullback(call.operands.subspan(end), cotangents);
  if (wanted.size() != custom.num_arguments)
    throw_invalid(call.node.where(), "[custom_vjp] backward returned ", wanted.size(),
                  " cotangents for the ", custom.num_arguments, " tensors of the arguments");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].defined() || !call.needs(first + i)) continue;
    if (wanted[i].type() != call.operands[first + i].type())
      throw_invalid(call.node.where(), "[custom_vjp] the cotangent of argument tensor ", i, " is ",
                    wanted[i].type(), ", but the argument is ", call.operands[first + i].type());
    out[first + i] = wanted[i];
  }
}

// The values are passed through; the derivative for the batch is the user's pullback, batched.
void batch_custom_vjp(const BatchCall& call, std::span<Tensor> results) {
  const CustomAttributes& custom = attributes_of(call.node.attributes());
  auto pullback = [each = custom.pullback, size = call.size, axis = std::string(call.mesh_axis),
                   where = call.node.where()](std::span<const Tensor> residuals,
                                              std::span<const Tensor> cotangents) {
    std::vector<Tensor> operands(residuals.begin(), residuals.end());
    operands.insert(operands.end(), cotangents.begin(), cotangents.end());
    InlineVector<bool, 4> batched(operands.size(), true);
    auto of_member = [&](std::span<const Tensor> given) {
      return each(given.first(residuals.size()), given.subspan(residuals.size()));
    };
    return batch_call(of_member, operands, std::span<const bool>(batched.data(), batched.size()),
                      {.size = size, .mesh_axis = axis}, where);
  };
  record_batched(call,
                 std::make_unique<CustomAttributes>(custom.num_results, custom.num_arguments,
                                                    std::move(pullback)),
                 batched_operands(call), results);
}

constinit const OpDef custom_vjp_op = {
    .name = "custom_vjp",
    .operands = "results, arguments, residuals...",
    .doc = "The results themselves, with a user-defined derivative.",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          for (std::size_t i = 0; i < attributes_of(call.attributes).num_results; ++i)
            results.push_back(call.operand(i));
        },
    .sharding_rule = custom_rule,
    // Reshapes to the same shape, which the compiler removes.
    .emit =
        [](const OpCall&, OpEmission& out) {
          for (std::size_t i = 0; i < out.results.size(); ++i)
            out.writer.op("stablehlo.reshape", {out.results[i]}, {out.operands[i]}, out.location)
                .done();
        },
    .vjp = custom_vjp_of,
    .batch = batch_custom_vjp,
    .traits = {.recomputation = Recomputation::kFree},
};

}  // namespace

std::vector<Tensor> internal::own_arguments(const std::vector<Tensor>& arguments) {
  std::vector<Tensor> own = arguments;
  if (only_recording())
    for (Tensor& argument : own)
      if (argument.defined() && is_inexact(argument.dtype())) {
        Tensor wide = wide_number(argument);
        argument = identity_of(argument);
        // The derivative by a number is the user's, too: no path may lead past the argument.
        if (wide.defined()) set_wide_number(argument, stop_gradient(wide));
      }
  return own;
}

bool internal::is_custom_vjp(const Node& node) { return &node.op() == &custom_vjp_op; }

std::span<const Value> internal::custom_arguments(const Node& node) {
  const CustomAttributes& custom = attributes_of(node.attributes());
  return node.operands().subspan(custom.num_results, custom.num_arguments);
}

std::span<const Value> internal::custom_results(const Node& node) {
  return node.operands().first(attributes_of(node.attributes()).num_results);
}

std::vector<Tensor> internal::with_pullback(std::span<const Tensor> results,
                                            std::span<const Tensor> arguments,
                                            std::span<const Tensor> residuals, Pullback pullback,
                                            SourceLocation where) {
  if (results.empty()) return {};
  std::vector<const Tensor*> operands;
  for (std::span<const Tensor> part : {results, arguments, residuals})
    for (const Tensor& tensor : part) operands.push_back(&tensor);
  Tensor first = record(
      custom_vjp_op,
      std::make_unique<CustomAttributes>(results.size(), arguments.size(), std::move(pullback)),
      std::span<const Tensor* const>(operands), where);
  std::vector<Tensor> wrapped;
  for (std::uint32_t i = 0; i < results.size(); ++i)
    wrapped.emplace_back(Value(first.value().node(), i));
  return wrapped;
}

std::vector<Tensor> internal::behind_barrier(const std::vector<Tensor>& inputs) {
  SourceLocation where = inputs.empty() ? SourceLocation{} : inputs.front().where();
  return with_pullback(
      inputs, inputs, {},
      [](std::span<const Tensor>, std::span<const Tensor> cotangents) {
        return optimization_barrier(std::vector<Tensor>(cotangents.begin(), cotangents.end()));
      },
      effective_source(where));
}

}  // namespace meshard
