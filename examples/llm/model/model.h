// A decoder-only transformer of one of the families of config.h. Its structure has the names of the
// checkpoint's tensors, so that io::restore and io::save read and write them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "examples/llm/model/config.h"
#include "examples/llm/model/projection.h"
#include "meshard/meshard.h"

namespace llm {

struct SelfAttention {
  Projection q_proj, k_proj, v_proj, o_proj;
  std::optional<Weight> q_norm, k_norm;
  MESHARD_FIELDS(q_proj, k_proj, v_proj, o_proj, q_norm, k_norm)
};

/// One expert; with their numbers as names, the experts are stacked: gate and up [experts, hidden,
/// width], down [experts, width, hidden].
struct Expert {
  Weight gate_proj, up_proj, down_proj;
  MESHARD_FIELDS(gate_proj, up_proj, down_proj)
};

/// A gated MLP; or a router, [experts, width], and experts.
struct Mlp {
  std::optional<Projection> gate_proj, up_proj, down_proj;
  std::optional<Weight> gate;
  std::optional<meshard::nn::Layers<Expert>> experts;
  MESHARD_FIELDS(gate_proj, up_proj, down_proj, gate, experts)
};

/// The experts with Mixtral's names: w1 is the gate, w3 is up and w2 is down.
struct MixtralExpert {
  Weight w1, w2, w3;
  MESHARD_FIELDS(w1, w2, w3)
};
struct MixtralMlp {
  Weight gate;
  meshard::nn::Layers<MixtralExpert> experts;
  MESHARD_FIELDS(gate, experts)
};

struct Layer {
  Weight input_layernorm;
  SelfAttention self_attn;
  Weight post_attention_layernorm;
  std::optional<Weight> pre_feedforward_layernorm, post_feedforward_layernorm;
  std::optional<Mlp> mlp;
  std::optional<MixtralMlp> block_sparse_moe;
  MESHARD_FIELDS(input_layernorm, self_attn, post_attention_layernorm, pre_feedforward_layernorm,
                 post_feedforward_layernorm, mlp, block_sparse_moe)
};

struct Body {
  Weight embed_tokens;
  meshard::nn::Layers<Layer> layers;
  Weight norm;
  MESHARD_FIELDS(embed_tokens, layers, norm)
};

/// The parameters of a model.
struct Model {
  Body model;
  std::optional<Weight> lm_head;
  MESHARD_FIELDS(model, lm_head)
};

// Low-rank adapters of linear layers, with PEFT's names.

struct AttentionAdapters {
  std::optional<Adapter> q_proj, k_proj, v_proj, o_proj;
  MESHARD_FIELDS(q_proj, k_proj, v_proj, o_proj)
};
struct MlpAdapters {
  std::optional<Adapter> gate_proj, up_proj, down_proj;
  MESHARD_FIELDS(gate_proj, up_proj, down_proj)
};
struct LayerAdapters {
  AttentionAdapters self_attn;
  MlpAdapters mlp;
  MESHARD_FIELDS(self_attn, mlp)
};
struct BodyAdapters {
  meshard::nn::Layers<LayerAdapters> layers;
  MESHARD_FIELDS(layers)
};
struct Adapters {
  BodyAdapters model;
  MESHARD_FIELDS(model)
};

/// Adapters, and the factor of what they add: alpha / rank.
struct Adaptation {
  const Adapters& adapters;
  double scale = 1;
};

/// Creates one parameter: its shape, the names of its dimensions for the rules, and its dtype.
using Make = std::function<meshard::Tensor(const meshard::Shape&, const meshard::PartitionSpec&,
                                           meshard::DType)>;

/// All parameters of a model with this config, each by one call of `make`. The first dimension of
/// those of layers is the layers', without a name. Dense parameters are of `dtype`.
/// Dimension names: "vocabulary", "embed", "heads", "key_heads", "hidden", "expert".
Model make_model(const Config& config, meshard::DType dtype, const Make& make);

/// The same, of abstract tensors with the shardings of the rules.
Model describe_model(const Config& config, meshard::DType dtype,
                     const meshard::nn::AxisRules& rules);

/// Shards the batch over the mesh's axis "data", and heads, hidden values, experts and vocabulary
/// over "model", each if it can be divided evenly. With `fsdp`, the width of parameters is sharded
/// over "data" too.
/// @error invalid argument: heads that cannot be divided; an axis of another name
meshard::Result<meshard::nn::AxisRules> rules_for(const Config& config, const meshard::Mesh& mesh,
                                                  bool fsdp = false);

/// The logits f32[batch, time, vocabulary] after each of the tokens, i32[batch, time], of sequences
/// that begin with them. `recompute` keeps only the values between layers for derivatives.
meshard::Tensor logits_of(const Model& model, const Config& config, const meshard::Tensor& tokens,
                          const meshard::nn::AxisRules& rules,
                          const std::optional<Adaptation>& adaptation = std::nullopt,
                          bool recompute = false);

}  // namespace llm
