// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/block.h"

#include <cmath>
#include <limits>

namespace llm {

using namespace meshard;

namespace {

const PartitionSpec kStream = P("batch", none, none);

Tensor activated(const Config& config, const Tensor& x) {
  if (config.activation == "silu") return silu(x);
  return gelu(x, config.activation == "gelu" ? GeluForm::kErf : GeluForm::kTanh);
}

Tensor rms_normed(const Config& config, const Weight& weight, const Tensor& x) {
  Tensor scale = astype(weight.weight, DType::f32);
  return meshard::rms_norm(x, config.norm_adds_one ? scale + 1 : scale, config.norm_epsilon);
}

LayerSetting settings_of(const Config& config) {
  std::vector<float> angles;
  std::vector<std::int32_t> windows;
  const std::vector<float> whole = frequencies(config.rope, config.head_size);
  const std::vector<float> local = frequencies(config.local_rope, config.head_size);
  for (const std::optional<std::int64_t>& window : config.windows) {
    const std::vector<float>& of_layer = window ? local : whole;
    angles.insert(angles.end(), of_layer.begin(), of_layer.end());
    constexpr std::int64_t kAll = std::numeric_limits<std::int32_t>::max();
    windows.push_back(static_cast<std::int32_t>(std::min(window.value_or(kAll), kAll)));
  }
  return {from_host(std::move(angles), {config.layers, config.head_size / 2}),
          from_host(std::move(windows), {config.layers})};
}

}  // namespace

LayerStep stacked_steps(const Model& model, const Config& config,
                        const std::optional<Adaptation>& adaptation) {
  LayerStep all{model.model.layers.stacked, settings_of(config), std::nullopt};
  if (adaptation) all.adapters = adaptation->adapters.model.layers.stacked;
  return all;
}

Tensor Block::norm(const Weight& weight, const Tensor& x) const {
  return rms_normed(config_, weight, x);
}

Tensor Block::project_by(const Projection& params, const Tensor& x,
                         const std::optional<Adapter>& adapter) const {
  return project(params, config_.quantization, x, adapter, adapter_scale_);
}

// As nn::rotated(), with the angles of the layer and, for yarn, a factor.
Tensor Block::rotated(const Tensor& heads, const Tensor& positions) const {
  std::int64_t half = config_.head_size / 2;
  Tensor angle = expand_dims(astype(positions, DType::f32), -1) * step_.setting.frequencies;
  angle = expand_dims(angle, -2);  // [(batch,) time, 1, half]
  Tensor c = cos(angle), s = sin(angle);
  if (double factor = config_.rope.attention_factor; factor != 1) c = c * factor, s = s * factor;
  Tensor wide = astype(heads, DType::f32);
  Tensor a = wide[{ellipsis, range(0, half)}], b = wide[{ellipsis, range(half, none)}];
  return astype(concat({a * c - b * s, a * s + b * c}, -1), heads.dtype());
}

Block::Heads Block::heads_of(const Tensor& x, const Tensor& positions) const {
  const SelfAttention& params = step_.layer.self_attn;
  AttentionAdapters none_at_all;
  const AttentionAdapters& adapters = step_.adapters ? step_.adapters->self_attn : none_at_all;
  Tensor normed = norm(step_.layer.input_layernorm, x);
  auto heads = [&](const Projection& projection, const std::optional<Adapter>& adapter,
                   std::int64_t count, const char* name) {
    Tensor y = project_by(projection, normed, adapter);
    return rules_.mark(reshape(y, {x.dim(0), x.dim(1), count, config_.head_size}),
                       P("batch", none, name, none));
  };
  Heads all{heads(params.q_proj, adapters.q_proj, config_.heads, "heads"),
            heads(params.k_proj, adapters.k_proj, config_.key_heads, "key_heads"),
            heads(params.v_proj, adapters.v_proj, config_.key_heads, "key_heads")};
  if (params.q_norm) all.query = norm(*params.q_norm, all.query);
  if (params.k_norm) all.key = norm(*params.k_norm, all.key);
  all.query = rotated(all.query, positions);
  all.key = rotated(all.key, positions);
  return all;
}

Tensor Block::sees(const Tensor& positions, const Tensor& keys) const {
  Tensor seen = keys <= positions;
  if (!config_.has_windows()) return seen;
  return logical_and(seen, positions - keys < step_.setting.window);
}

Tensor Block::attend(const Heads& heads, const Tensor& seen) const {
  AttentionOptions options{.scale = config_.query_scale, .causal = !seen.defined(), .mask = seen};
  Tensor y =
      config_.attention_cap
          ? capped_attention(heads.query, heads.key, heads.value, options, *config_.attention_cap)
          : dot_product_attention(heads.query, heads.key, heads.value, options);
  return reshape(y, {y.dim(0), y.dim(1), config_.heads * config_.head_size});
}

// All experts compute, and the results of those that a token does not use are multiplied by 0:
// exact for any routing. With a rule for "expert", each device computes its own experts.
Tensor Block::experts(const Weight& router, const Expert& stacked, const Tensor& x) const {
  Tensor scores = einsum("btd,ed->bte", {x, astype(router.weight, x.dtype())});
  TopK best = top_k(softmax(astype(scores, DType::f32), -1), config_.experts_used);
  Tensor shares = best.values;
  if (config_.normalized_experts) shares = shares / sum(shares, {-1}, true);
  Tensor chosen = one_hot(best.indices, config_.experts);  // [batch, time, used, experts]
  Tensor share = astype(sum(chosen * expand_dims(shares, -1), {2}), x.dtype());
  auto split = [&](const Tensor& t) { return rules_.mark(t, P("batch", none, "expert", none)); };
  auto weight = [&](const Weight& of) { return astype(of.weight, x.dtype()); };
  Tensor gate = split(einsum("btd,ehd->bteh", {x, weight(stacked.gate_proj)}));
  Tensor up = split(einsum("btd,ehd->bteh", {x, weight(stacked.up_proj)}));
  Tensor hidden = activated(config_, gate) * up * expand_dims(share, -1);
  return einsum("bteh,edh->btd", {hidden, weight(stacked.down_proj)});
}

Tensor Block::mlp(const Tensor& x) const {
  const Layer& layer = step_.layer;
  if (layer.block_sparse_moe) {
    const MixtralExpert& of = layer.block_sparse_moe->experts.stacked;
    return experts(layer.block_sparse_moe->gate, {of.w1, of.w3, of.w2}, x);
  }
  const Mlp& params = *layer.mlp;
  if (params.experts) return experts(*params.gate, params.experts->stacked, x);
  MlpAdapters none_at_all;
  const MlpAdapters& adapters = step_.adapters ? step_.adapters->mlp : none_at_all;
  Tensor gate = activated(config_, project_by(*params.gate_proj, x, adapters.gate_proj));
  Tensor up = project_by(*params.up_proj, x, adapters.up_proj);
  return project_by(*params.down_proj, rules_.mark(gate * up, P("batch", none, "hidden")),
                    adapters.down_proj);
}

Tensor Block::finish(const Tensor& x, const Tensor& attended) const {
  const Layer& layer = step_.layer;
  std::optional<Adapter> adapter;
  if (step_.adapters) adapter = step_.adapters->self_attn.o_proj;
  Tensor added = project_by(layer.self_attn.o_proj, attended, adapter);
  if (config_.post_norms) added = norm(layer.post_attention_layernorm, added);
  Tensor stream = rules_.mark(x + added, kStream);
  Tensor before =
      norm(config_.post_norms ? *layer.pre_feedforward_layernorm : layer.post_attention_layernorm,
           stream);
  Tensor more = mlp(before);
  if (config_.post_norms) more = norm(*layer.post_feedforward_layernorm, more);
  return rules_.mark(stream + more, kStream);
}

Tensor embedded(const Model& model, const Config& config, const Tensor& tokens,
                const nn::AxisRules& rules) {
  Tensor x = take(model.model.embed_tokens.weight, tokens, 0);
  if (config.scaled_embedding)  // rounded to the dtype, as the models were trained
    x = x * full({}, std::sqrt(static_cast<double>(config.width)), x.dtype());
  return rules.mark(x, kStream);
}

Tensor to_logits(const Model& model, const Config& config, const Tensor& x,
                 const nn::AxisRules& rules) {
  Tensor last = rms_normed(config, model.model.norm, x);
  const Weight& head = model.lm_head ? *model.lm_head : model.model.embed_tokens;
  Tensor logits =
      astype(einsum("btd,vd->btv", {last, astype(head.weight, last.dtype())}), DType::f32);
  if (config.logits_cap) logits = tanh(logits / *config.logits_cap) * *config.logits_cap;
  return rules.mark(logits, P("batch", none, "vocabulary"));
}

}  // namespace llm
