// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/model.h"

#include "examples/llm/model/block.h"

namespace llm {

using namespace meshard;

namespace {

// Creates the parameters of the layers, stacked.
class LayerMaker {
 public:
  LayerMaker(const Config& config, DType dtype, const Make& make)
      : config_(config), dtype_(dtype), make_(make) {}

  Weight norm(std::int64_t size) const { return {stacked({size}, P(none), dtype_)}; }

  Projection linear(std::int64_t in, std::int64_t out, const char* in_name, const char* out_name,
                    bool bias) const {
    Projection made;
    const Quantization& q = config_.quantization;
    if (bias) made.bias = stacked({out}, P(out_name), dtype_);
    if (q.method == Quantization::Method::kNone) {
      made.weight = stacked({out, in}, P(out_name, in_name), dtype_);
      return made;
    }
    std::int64_t packed = 32 / q.bits, groups = q.group == -1 ? 1 : (in + q.group - 1) / q.group;
    bool gptq = q.method == Quantization::Method::kGptq;
    made.qweight = gptq ? stacked({in / packed, out}, P(in_name, out_name), DType::i32)
                        : stacked({in, out / packed}, P(in_name, out_name), DType::i32);
    made.qzeros = stacked({groups, out / packed}, P(none, out_name), DType::i32);
    made.scales = stacked({groups, out}, P(none, out_name), DType::f16);
    if (gptq) made.g_idx = stacked({in}, P(in_name), DType::i32);
    return made;
  }

  // A matrix of each expert.
  Weight of_experts(std::int64_t out, std::int64_t in, const char* out_name,
                    const char* in_name) const {
    return {stacked({config_.experts, out, in}, P("expert", out_name, in_name), dtype_)};
  }

  Tensor stacked(const Shape& one, const PartitionSpec& names, DType dtype) const {
    Dimensions sizes{config_.layers};
    for (std::int64_t size : one) sizes.push_back(size);
    std::vector<DimensionSpec> dimensions{none};
    for (const DimensionSpec& each : names.dimensions()) dimensions.push_back(each);
    return make_(Shape(std::move(sizes)), PartitionSpec(std::move(dimensions)), dtype);
  }

 private:
  const Config& config_;
  DType dtype_;
  const Make& make_;
};

SelfAttention make_self_attention(const Config& c, const LayerMaker& make) {
  SelfAttention made;
  std::int64_t queries = c.heads * c.head_size, keys = c.key_heads * c.head_size;
  made.q_proj = make.linear(c.width, queries, "embed", "heads", c.qkv_bias);
  made.k_proj = make.linear(c.width, keys, "embed", "key_heads", c.qkv_bias);
  made.v_proj = make.linear(c.width, keys, "embed", "key_heads", c.qkv_bias);
  made.o_proj = make.linear(queries, c.width, "heads", "embed", c.out_bias);
  if (c.qk_norm) {
    made.q_norm = make.norm(c.head_size);
    made.k_norm = make.norm(c.head_size);
  }
  return made;
}

void make_mlp_of(const Config& c, const LayerMaker& make, Layer& layer) {
  if (c.experts == 0) {
    layer.mlp.emplace();
    layer.mlp->gate_proj = make.linear(c.width, c.hidden, "embed", "hidden", c.mlp_bias);
    layer.mlp->up_proj = make.linear(c.width, c.hidden, "embed", "hidden", c.mlp_bias);
    layer.mlp->down_proj = make.linear(c.hidden, c.width, "hidden", "embed", c.mlp_bias);
    return;
  }
  Weight gate = make.of_experts(c.expert_hidden, c.width, "hidden", "embed");
  Weight up = make.of_experts(c.expert_hidden, c.width, "hidden", "embed");
  Weight down = make.of_experts(c.width, c.expert_hidden, "embed", "hidden");
  Weight router{*make.linear(c.width, c.experts, "embed", "router", false).weight};
  if (c.family == Family::kMixtral) {
    layer.block_sparse_moe = MixtralMlp{router, {{gate, down, up}}};
    return;
  }
  layer.mlp.emplace();
  layer.mlp->gate = router;
  layer.mlp->experts = nn::Layers<Expert>{{gate, up, down}};
}

}  // namespace

Model make_model(const Config& c, DType dtype, const Make& make) {
  LayerMaker of_layers(c, dtype, make);
  Model made;
  made.model.embed_tokens = {make({c.vocabulary, c.width}, P("vocabulary", "embed"), dtype)};
  Layer& layer = made.model.layers.stacked;
  layer.input_layernorm = of_layers.norm(c.width);
  layer.self_attn = make_self_attention(c, of_layers);
  layer.post_attention_layernorm = of_layers.norm(c.width);
  if (c.post_norms) {
    layer.pre_feedforward_layernorm = of_layers.norm(c.width);
    layer.post_feedforward_layernorm = of_layers.norm(c.width);
  }
  make_mlp_of(c, of_layers, layer);
  made.model.norm = {make({c.width}, P(none), dtype)};
  if (!c.tied_embedding)
    made.lm_head = Weight{make({c.vocabulary, c.width}, P("vocabulary", "embed"), dtype)};
  return made;
}

Model describe_model(const Config& config, DType dtype, const nn::AxisRules& rules) {
  return make_model(config, dtype, [&](const Shape& shape, const PartitionSpec& names, DType type) {
    return abstract_tensor(TensorType{type, shape}, rules.sharding(names));
  });
}

Result<nn::AxisRules> rules_for(const Config& c, const Mesh& mesh, bool fsdp) {
  for (const MeshAxis& axis : mesh.axes())
    if (axis.name != "data" && axis.name != "model")
      return Error(ErrorCode::kInvalidArgument, cat("[llm] the mesh has an axis \"", axis.name,
                                                    "\"; this program has \"data\" and \"model\""));
  std::vector<nn::AxisRules::Rule> rules;
  if (mesh.find_axis("data")) {
    rules.push_back({"batch", "data"});
    if (fsdp) rules.push_back({"embed", "data"});
  }
  if (mesh.find_axis("model")) {
    std::int64_t parts = mesh.axis_size("model");
    if (c.heads % parts != 0)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[llm] ", c.heads, " heads cannot be divided among the ", parts,
                       " devices of \"model\""));
    rules.push_back({"heads", "model"});
    if (c.key_heads % parts == 0) rules.push_back({"key_heads", "model"});
    if (c.experts > 0 && c.experts % parts == 0) rules.push_back({"expert", "model"});
    if ((c.experts > 0 ? c.expert_hidden : c.hidden) % parts == 0)
      rules.push_back({"hidden", "model"});
    if (c.vocabulary % parts == 0) rules.push_back({"vocabulary", "model"});
  }
  return nn::AxisRules(mesh, std::move(rules));
}

Tensor logits_of(const Model& model, const Config& config, const Tensor& tokens,
                 const nn::AxisRules& rules, const std::optional<Adaptation>& adaptation,
                 bool recompute) {
  Tensor positions = arange(tokens.dim(1));
  auto run = [&](const Tensor& stream, const LayerStep& step) {
    Block block(step, config, rules, adaptation ? adaptation->scale : 1);
    Tensor seen;
    if (config.has_windows())
      seen = block.sees(expand_dims(positions, 1), expand_dims(positions, 0));  // [queries, keys]
    return block.finish(stream, block.attend(block.heads_of(stream, positions), seen));
  };
  auto body = [&](const Tensor& stream, const LayerStep& step) {
    return std::pair(recompute ? checkpoint(run)(stream, step) : run(stream, step), std::tuple<>());
  };
  Tensor x =
      scan(body, embedded(model, config, tokens, rules), stacked_steps(model, config, adaptation))
          .first;
  return to_logits(model, config, x, rules);
}

}  // namespace llm
