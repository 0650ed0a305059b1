#include "tools/conformance/jax/transformer.h"

namespace meshard::conformance {
namespace {

template <class Model, class Optimizer>
std::vector<double> losses_of(Model& model, const Tensor& tokens, const Tensor& targets,
                              const nn::AxisRules& rules, const Optimizer& optimizer, int steps,
                              bool with_last) {
  auto loss_of = [&](const Model& m) { return transformer_loss(m, tokens, targets, rules); };
  auto state = optim::init(optimizer, model);
  auto step = jit(
      [&](const Model& m, const decltype(state)& s) {
        auto [loss, gradients] = value_and_grad(loss_of)(m);
        return std::tuple_cat(std::tuple(loss), optim::update(optimizer, m, gradients, s));
      },
      {.name = "train_step", .donate = {}});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    auto [loss, next, after] = step(model, state);
    losses.push_back(loss.template item<float>());
    model = next;
    state = after;
  }
  if (with_last) losses.push_back(jit(loss_of)(model).template item<float>());
  return losses;
}

// Marks the residual stream so that the batch is split.
Tensor spread(const Tensor& x, const nn::AxisRules& rules) {
  return rules.mark(x, P("dp", none, none));
}

Tensor through_block(const TransformerBlock& block, Tensor x, const nn::AxisRules& rules) {
  x = spread(x + nn::attention(block.attention, nn::layer_norm(block.norm1, x)), rules);
  return spread(x + nn::mlp(block.mlp, nn::layer_norm(block.norm2, x)), rules);
}

template <class Model>
Tensor stream_of(const Model& model, const Tensor& tokens, const nn::AxisRules& rules) {
  return spread(nn::embedding(model.words, tokens) + model.positions, rules);
}

template <class Model>
Tensor loss_at(const Model& model, const Tensor& x, const Tensor& targets) {
  return cross_entropy(nn::linear(model.head, nn::layer_norm(model.norm, x)), targets);
}

}  // namespace

RolledTransformer rolled(const Transformer& model) {
  RolledTransformer out{model.words, model.positions, stack_structures(model.blocks), model.norm,
                        model.head};
  std::vector<Tensor> stacked = structure::tensors(out.blocks);
  std::vector<Tensor> layers = structure::tensors(model.blocks.front());
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    std::optional<Sharding> layer = layers[i].sharding();
    if (!layer) continue;
    std::vector<DimensionSpec> dimensions = layer->spec().dimensions();
    dimensions.insert(dimensions.begin(), none);
    stacked[i] = mark_sharding(stacked[i], layer->mesh(), PartitionSpec(std::move(dimensions)));
  }
  out.blocks = structure::with_tensors(out.blocks, stacked);
  return out;
}

Transformer empty_transformer(std::size_t layers) {
  Transformer model;
  model.blocks.resize(layers);
  for (TransformerBlock& block : model.blocks) block.mlp = {{{}, Tensor()}, {{}, Tensor()}};
  return model;
}

std::map<std::string, Tensor*> tensors_by_name(Transformer& model) {
  std::map<std::string, Tensor*> names{{"tok", &model.words.table},
                                       {"pos", &model.positions},
                                       {"lnf_g", &model.norm.scale},
                                       {"lnf_b", &model.norm.bias},
                                       {"head", &model.head.weight}};
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    TransformerBlock& b = model.blocks[i];
    auto add_name = [&](const char* name, Tensor& tensor) {
      names[cat("blocks.", i, ".", name)] = &tensor;
    };
    add_name("ln1_g", b.norm1.scale);
    add_name("ln1_b", b.norm1.bias);
    add_name("wq", b.attention.query);
    add_name("wk", b.attention.key);
    add_name("wv", b.attention.value);
    add_name("wo", b.attention.out);
    add_name("ln2_g", b.norm2.scale);
    add_name("ln2_b", b.norm2.bias);
    add_name("w1", b.mlp.up.weight);
    add_name("b1", *b.mlp.up.bias);
    add_name("w2", b.mlp.down.weight);
    add_name("b2", *b.mlp.down.bias);
  }
  return names;
}

Tensor transformer_loss(const Transformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules) {
  Tensor x = stream_of(model, tokens, rules);
  for (const TransformerBlock& block : model.blocks) x = through_block(block, x, rules);
  return loss_at(model, x, targets);
}

Tensor transformer_loss(const RolledTransformer& model, const Tensor& tokens, const Tensor& targets,
                        const nn::AxisRules& rules) {
  Tensor x = repeat(model.blocks, stream_of(model, tokens, rules),
                    [&](const TransformerBlock& block, const Tensor& stream) {
                      return through_block(block, stream, rules);
                    });
  return loss_at(model, x, targets);
}

std::vector<double> train_transformer(Transformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Adam& adam, int steps, bool with_last) {
  return losses_of(model, tokens, targets, rules, adam, steps, with_last);
}

std::vector<double> train_transformer(Transformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Sgd& sgd, int steps, bool with_last) {
  return losses_of(model, tokens, targets, rules, sgd, steps, with_last);
}

std::vector<double> train_transformer(RolledTransformer& model, const Tensor& tokens,
                                      const Tensor& targets, const nn::AxisRules& rules,
                                      const optim::Adam& adam, int steps, bool with_last) {
  return losses_of(model, tokens, targets, rules, adam, steps, with_last);
}

}  // namespace meshard::conformance
