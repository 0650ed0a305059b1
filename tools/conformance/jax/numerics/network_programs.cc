// nn_*: activations, norms, losses, attention.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  return dot_product_attention(q, k, v, {.causal = causal});
}

// NOLINTNEXTLINE(readability-function-size): a table
const Programs& networks() {
  static const Programs programs{
      {"softmax_axis0", single([](Inputs x) { return softmax(x[0], 0); })},
      {"log_softmax", single([](Inputs x) { return log_softmax(x[0]); })},
      {"gelu_tanh", single([](Inputs x) { return gelu(x[0]); })},
      {"gelu_erf", single([](Inputs x) { return gelu(x[0], GeluForm::kErf); })},
      {"silu", single([](Inputs x) { return silu(x[0]); })},
      {"swish", single([](Inputs x) { return silu(x[0]); })},
      {"sigmoid", single([](Inputs x) { return logistic(x[0]); })},
      {"softplus", single([](Inputs x) { return softplus(x[0]); })},
      {"elu", single([](Inputs x) { return elu(x[0]); })},
      {"selu", single([](Inputs x) { return selu(x[0]); })},
      {"celu", single([](Inputs x) { return celu(x[0]); })},
      {"relu6", single([](Inputs x) { return relu6(x[0]); })},
      {"soft_sign", single([](Inputs x) { return soft_sign(x[0]); })},
      {"softsign", single([](Inputs x) { return soft_sign(x[0]); })},
      {"mish", single([](Inputs x) { return mish(x[0]); })},
      {"glu", single([](Inputs x) { return glu(x[0]); })},
      {"log_sigmoid", single([](Inputs x) { return log_sigmoid(x[0]); })},
      {"hard_tanh", single([](Inputs x) { return hard_tanh(x[0]); })},
      {"hard_sigmoid", single([](Inputs x) { return hard_sigmoid(x[0]); })},
      {"hard_silu", single([](Inputs x) { return hard_silu(x[0]); })},
      {"hard_swish", single([](Inputs x) { return hard_silu(x[0]); })},
      {"layernorm", single([](Inputs x) { return layer_norm(x[0], x[1], x[2]); })},
      {"layer_norm", single([](Inputs x) { return layer_norm(x[0], x[1], x[2]); })},
      {"rmsnorm", single([](Inputs x) { return rms_norm(x[0], x[1]); })},
      {"rms_norm", single([](Inputs x) { return rms_norm(x[0], x[1]); })},
      {"xent", single([](Inputs x) { return cross_entropy(x[0], x[1]); })},
      {"mse", single([](Inputs x) { return mean(square(x[0] - x[1])); })},
      {"attention", single([](Inputs x) { return attention(x[0], x[1], x[2], false); })},
      {"attention_causal", single([](Inputs x) { return attention(x[0], x[1], x[2], true); })},
  };
  return programs;
}

}  // namespace

std::optional<Program> network_program(const Json& test) {
  const std::string id = test.at("id");
  if (!id.starts_with("nn_")) return std::nullopt;
  std::string name = id.substr(3);
  if (auto found = find_program(networks(), name)) return found;
  // `softmax_large`, `relu_zero`: the same functions of other inputs.
  if (name.starts_with("softmax")) return single([](Inputs x) { return softmax(x[0]); });
  if (name.starts_with("relu")) return single([](Inputs x) { return relu(x[0]); });
  if (name.starts_with("gelu")) return single([](Inputs x) { return gelu(x[0]); });
  return std::nullopt;
}

}  // namespace meshard::conformance
