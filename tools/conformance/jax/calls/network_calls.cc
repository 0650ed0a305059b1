// Layers and losses.
#include "meshard/nn/nn.h"
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

LossReduction reduction_of(const Attributes& at) {
  constexpr LossReduction kReductions[] = {LossReduction::kMean, LossReduction::kSum,
                                           LossReduction::kNone};
  return kReductions[at.one_of("reduction", {"mean", "sum", "none"})];
}

Tensor attended(Operands x, const Attributes& at) {
  AttentionOptions options{.causal = at.flag("causal")};
  if (at.has("scale")) options.scale = at.number("scale");
  options.left_window = at.maybe_integer("left_window");
  options.right_window = at.maybe_integer("right_window");
  std::size_t next = 3;
  if (at.flag("bias")) options.bias = x[next++];
  if (at.flag("mask")) options.mask = x[next++];
  return dot_product_attention(x[0], x[1], x[2], options);
}

Tensor loss_of_classes(Operands x, const Attributes& at) {
  return cross_entropy(
      x[0], x[1], {.label_smoothing = at.number("label_smoothing"), .reduction = reduction_of(at)});
}

// The operands are up, its bias, down, its bias.
Tensor mlp(Operands x, const Attributes& at) {
  nn::Mlp params{{x[1], x[2]}, {x[3], x[4]}};
  constexpr Tensor (*kActivations[])(const Tensor&) = {nn::activation::gelu, nn::activation::silu,
                                                       nn::activation::relu};
  return nn::mlp(params, x[0], kActivations[at.one_of("activation", {"gelu", "silu", "relu"})]);
}

Tensor rotated_by_place(Operands x, const Attributes& at) {
  bool pairs = at.one_of("form", {"halves", "pairs"}) == 1;
  return rotary_embedding(x[0], x[1], pairs ? RotaryForm::kPairs : RotaryForm::kHalves,
                          at.number("base"));
}

Tensor linear_layer(Operands x, const Attributes&) {
  return x.size() > 2 ? linear(x[0], x[1], x[2]) : linear(x[0], x[1]);
}

}  // namespace

const CallTable& network_calls() {
  static const CallTable table{
      {"layer_norm", one_result([](Operands x, const Attributes& at) {
         return layer_norm(x[0], x[1], x[2], at.number("epsilon"));
       })},
      {"rms_norm", one_result([](Operands x, const Attributes& at) {
         return rms_norm(x[0], x[1], at.number("epsilon"));
       })},
      {"group_norm", one_result([](Operands x, const Attributes& at) {
         return group_norm(x[0], x[1], x[2], at.integer("groups"), at.number("epsilon"));
       })},
      {"batch_norm", one_result([](Operands x, const Attributes& at) {
         return batch_norm(x[0], x[1], x[2], at.number("epsilon")).result;
       })},
      {"dot_product_attention", one_result(attended)},
      {"cross_entropy", one_result(loss_of_classes)},
      {"binary_cross_entropy", one_result([](Operands x, const Attributes& at) {
         return binary_cross_entropy(x[0], x[1], reduction_of(at));
       })},
      {"linear", one_result(linear_layer)},
      {"mlp", one_result(mlp)},
      {"embedding", one_result([](Operands x, const Attributes&) {
         return nn::embedding(nn::Embedding{x[0]}, x[1]);
       })},
      {"rotary_embedding", one_result(rotated_by_place)},
  };
  return table;
}

}  // namespace meshard::conformance
