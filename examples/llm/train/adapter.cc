// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/train/adapter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "meshard/base/json_reader.h"
#include "meshard/base/json_writer.h"
#include "meshard/io/load_rule.h"

namespace llm {

using namespace meshard;

namespace {

// The names in a file of PEFT begin with base_model.model.
struct PeftModel {
  Adapters model;
  MESHARD_FIELDS(model)
};
struct PeftFile {
  PeftModel base_model;
  MESHARD_FIELDS(base_model)
};

// One kind of layers that may have adapters.
struct Target {
  const char* name;
  std::int64_t in, out;
  const char *in_name, *out_name;
  std::optional<Adapter> AttentionAdapters::*attention = nullptr;
  std::optional<Adapter> MlpAdapters::*mlp = nullptr;
};

std::vector<Target> targets_of(const Config& c) {
  std::int64_t queries = c.heads * c.head_size, keys = c.key_heads * c.head_size;
  std::vector<Target> all{
      {"q_proj", c.width, queries, "embed", "heads", &AttentionAdapters::q_proj},
      {"k_proj", c.width, keys, "embed", "key_heads", &AttentionAdapters::k_proj},
      {"v_proj", c.width, keys, "embed", "key_heads", &AttentionAdapters::v_proj},
      {"o_proj", queries, c.width, "heads", "embed", &AttentionAdapters::o_proj}};
  if (c.experts == 0) {
    all.push_back(
        {"gate_proj", c.width, c.hidden, "embed", "hidden", nullptr, &MlpAdapters::gate_proj});
    all.push_back(
        {"up_proj", c.width, c.hidden, "embed", "hidden", nullptr, &MlpAdapters::up_proj});
    all.push_back(
        {"down_proj", c.hidden, c.width, "hidden", "embed", nullptr, &MlpAdapters::down_proj});
  }
  return all;
}

// Creates the adapters with `make(layers' first dimension and sizes, names, inputs or 0 for
// zeros)`.
template <class MakeOne>
Result<Adapters> made_adapters(const Config& config, const AdapterConfig& adapter,
                               const MakeOne& make) {
  if (adapter.rank < 1)
    return Error(ErrorCode::kInvalidArgument, cat("[llm] the rank of adapters is ", adapter.rank));
  std::set<std::string> left(adapter.targets.begin(), adapter.targets.end());
  Adapters adapters;
  LayerAdapters& layer = adapters.model.layers.stacked;
  for (const Target& target : targets_of(config)) {
    if (left.erase(target.name) == 0) continue;
    Adapter one{{make(Shape{config.layers, adapter.rank, target.in},
                      P(none, "rank", target.in_name), target.in)},
                {make(Shape{config.layers, target.out, adapter.rank},
                      P(none, target.out_name, "rank"), std::int64_t{0})}};
    (target.attention ? layer.self_attn.*target.attention : layer.mlp.*target.mlp) = one;
  }
  if (!left.empty())
    return Error(ErrorCode::kInvalidArgument, cat("[llm] this model has no linear layers named \"",
                                                  *left.begin(), "\" that can have adapters"));
  if (adapter.targets.empty())
    return Error(ErrorCode::kInvalidArgument, "[llm] adapters have no targets");
  return adapters;
}

Tensor with_adapter(const Tensor& weight, const Adapter& adapter, double scale) {
  Tensor change = einsum("lor,lri->loi", {astype(adapter.lora_B.weight, DType::f32),
                                          astype(adapter.lora_A.weight, DType::f32)});
  return astype(astype(weight, DType::f32) + change * scale, weight.dtype());
}

// Fields of adapter_config.json that must be absent, null, false or empty.
constexpr const char* kUnsupported[] = {"use_dora",
                                        "rank_pattern",
                                        "alpha_pattern",
                                        "modules_to_save",
                                        "layers_to_transform",
                                        "layers_pattern",
                                        "layer_replication",
                                        "fan_in_fan_out",
                                        "use_qalora",
                                        "trainable_token_indices",
                                        "lora_bias",
                                        "target_parameters",
                                        "exclude_modules",
                                        "corda_config",
                                        "eva_config",
                                        "alora_invocation_tokens",
                                        "arrow_config",
                                        "megatron_config"};
constexpr const char* kWithoutEffect[] = {
    "peft_type",      "task_type",         "r",
    "lora_alpha",     "lora_dropout",      "target_modules",
    "bias",           "use_rslora",        "base_model_name_or_path",
    "inference_mode", "init_lora_weights", "revision",
    "auto_mapping",   "peft_version",      "loftq_config",
    "megatron_core",  "qalora_group_size", "ensure_weight_tying"};

bool is_set(const JsonValue& value) {
  using Kind = JsonValue::Kind;
  return !(value.is(Kind::kNull) || (value.is(Kind::kBool) && !value.truth) ||
           (value.is(Kind::kObject) && value.members.empty()) ||
           (value.is(Kind::kArray) && value.elements.empty()));
}

}  // namespace

double AdapterConfig::scale() const {
  auto size = static_cast<double>(rank);
  return alpha / (scaled_by_root ? std::sqrt(size) : size);
}

Result<AdapterConfig> read_adapter_config(const std::string& folder) {
  std::string path = std::filesystem::path(folder) / "adapter_config.json";
  MESHARD_ASSIGN_OR_RETURN(std::string text, read_whole_file(path));
  MESHARD_ASSIGN_OR_RETURN(JsonValue object, read_json(text, path));
  AdapterConfig config;
  std::string wrong;
  for (const JsonMember& member : object.members) {
    auto named = [&](const char* name) { return member.name == name; };
    if (std::any_of(std::begin(kWithoutEffect), std::end(kWithoutEffect), named) ||
        !is_set(member.value))
      continue;
    wrong += cat("\n  ", member.name,
                 std::any_of(std::begin(kUnsupported), std::end(kUnsupported), named)
                     ? " is not supported"
                     : " is unknown, so it may change the results");
  }
  auto text_of = [&](const char* name) {
    const JsonValue* value = object.find(name);
    return value ? value->text : std::string();
  };
  if (text_of("peft_type") != "LORA") wrong += "\n  peft_type must be \"LORA\"";
  if (std::string bias = text_of("bias"); !bias.empty() && bias != "none")
    wrong += "\n  bias must be \"none\"";
  const JsonValue *rank = object.find("r"), *targets = object.find("target_modules"),
                  *root = object.find("use_rslora");
  if (rank && rank->whole_number())
    config.rank = static_cast<std::int64_t>(*rank->whole_number());
  else
    wrong += "\n  r must be a whole number";
  if (text_of("lora_alpha").empty())
    wrong += "\n  lora_alpha must be a number";
  else
    config.alpha = std::stod(text_of("lora_alpha"));
  config.scaled_by_root = root && root->truth;
  config.targets.clear();
  if (targets)
    for (const JsonValue& each : targets->elements) config.targets.push_back(each.text);
  if (config.targets.empty()) wrong += "\n  target_modules must be a list of names";
  if (!wrong.empty())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", path, "] this adapter cannot be used:", wrong));
  return config;
}

Result<Adapters> make_adapters(const Config& config, const AdapterConfig& adapter,
                               const nn::AxisRules& rules, std::int64_t seed) {
  nn::Maker maker(rules, random::key(seed));
  return made_adapters(
      config, adapter, [&](const Shape& shape, const PartitionSpec& names, std::int64_t in) {
        double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
        return maker(shape, names, in > 0 ? nn::init::uniform(bound) : nn::init::zeros());
      });
}

Result<Adapters> load_adapters(const std::string& folder, const Config& config,
                               const AdapterConfig& adapter, const nn::AxisRules& rules) {
  Result<Adapters> like = made_adapters(
      config, adapter, [&](const Shape& shape, const PartitionSpec& names, std::int64_t) {
        return abstract_tensor(TensorType{DType::f32, shape}, rules.sharding(names));
      });
  if (!like) return like.error();
  std::string path = std::filesystem::path(folder) / "adapter_model.safetensors";
  std::vector<io::LoadRule> all{{.from = {"*"}, .to = {"*"}, .dtype = DType::f32}};
  MESHARD_ASSIGN_OR_RETURN(PeftFile file, io::restore(path, all, PeftFile{{*like}}));
  return file.base_model.model;
}

Result<void> save_adapters(const std::string& folder, const Adapters& adapters,
                           const AdapterConfig& adapter, const std::string& base) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Error(ErrorCode::kUnavailable,
                 cat("[llm] cannot create ", folder, ": ", error.message()));
  JsonWriter json;
  json.begin_object();
  json.key("peft_type");
  json.value("LORA");
  json.key("task_type");
  json.value("CAUSAL_LM");
  json.key("base_model_name_or_path");
  json.value(base);
  json.key("r");
  json.value(adapter.rank);
  json.key("lora_alpha");
  json.value(adapter.alpha);
  json.key("lora_dropout");
  json.value(0.0);
  json.key("bias");
  json.value("none");
  json.key("use_rslora");
  json.value(adapter.scaled_by_root);
  json.key("inference_mode");
  json.value(true);
  json.key("target_modules");
  json.begin_array();
  for (const std::string& target : adapter.targets) json.value(target);
  json.end_array();
  json.end_object();
  MESHARD_RETURN_IF_ERROR(
      write_whole_file(fs::path(folder) / "adapter_config.json", std::move(json).text()));
  return io::save(fs::path(folder) / "adapter_model.safetensors", PeftFile{{adapters}});
}

Result<Model> merged(const Model& model, const Config& config, const Adapters& adapters,
                     double scale) {
  if (config.quantization.method != Quantization::Method::kNone)
    return Error(ErrorCode::kInvalidArgument,
                 "[llm] adapters cannot be merged into quantized weights");
  auto merge = jit([&](const Model& before, const Adapters& changes) {
    Model all = before;
    Layer& layer = all.model.layers.stacked;
    const LayerAdapters& of = changes.model.layers.stacked;
    auto add = [&](Projection& projection, const std::optional<Adapter>& adapter) {
      if (adapter) projection.weight = with_adapter(*projection.weight, *adapter, scale);
    };
    add(layer.self_attn.q_proj, of.self_attn.q_proj);
    add(layer.self_attn.k_proj, of.self_attn.k_proj);
    add(layer.self_attn.v_proj, of.self_attn.v_proj);
    add(layer.self_attn.o_proj, of.self_attn.o_proj);
    if (layer.mlp && layer.mlp->gate_proj) {
      add(*layer.mlp->gate_proj, of.mlp.gate_proj);
      add(*layer.mlp->up_proj, of.mlp.up_proj);
      add(*layer.mlp->down_proj, of.mlp.down_proj);
    }
    return all;
  });
  return merge(model, adapters);
}

}  // namespace llm
