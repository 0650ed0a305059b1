// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "meshard/base/json_reader.h"

namespace llm {

using namespace meshard;

namespace {

constexpr std::pair<std::string_view, Family> kFamilies[] = {
    {"llama", Family::kLlama},     {"mistral", Family::kMistral},
    {"qwen2", Family::kQwen2},     {"qwen3", Family::kQwen3},
    {"gemma2", Family::kGemma2},   {"gemma3_text", Family::kGemma3},
    {"mixtral", Family::kMixtral}, {"qwen3_moe", Family::kQwen3Moe},
};

// Fields without effect on logits. Those of training alone are ignored by this program.
constexpr std::string_view kHarmless[] = {
    "architectures",
    "model_type",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "use_cache",
    "cache_implementation",
    "initializer_range",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "_name_or_path",
    "name_or_path",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "id2label",
    "label2id",
    "problem_type",
    "chunk_size_feed_forward",
    "is_encoder_decoder",
    "tokenizer_class",
    "use_return_dict",
    "finetuning_task",
    "task_specific_params",
    "_attn_implementation",
    "attn_implementation",
    "_attn_implementation_autoset",
    "hub_version",
    "unsloth_version",
    "unsloth_fixed",
    "_commit_hash",
};

class Reader {
 public:
  Reader(const JsonValue& object, std::string prefix, std::string& wrong)
      : object_(object), prefix_(std::move(prefix)), wrong_(wrong) {}

  // The member, which is then known; null if it is missing or null.
  const JsonValue* find(std::string_view name) {
    known_.insert(std::string(name));
    const JsonValue* value = object_.find(name);
    return value && !value->is(JsonValue::Kind::kNull) ? value : nullptr;
  }
  bool has(std::string_view name) const { return object_.find(name) != nullptr; }
  template <class Number>
  std::optional<Number> number(std::string_view name) {
    const JsonValue* value = find(name);
    if (!value) return std::nullopt;
    Number found{};
    const std::string& text = value->text;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
    if (!value->is(JsonValue::Kind::kNumber) || error != std::errc() ||
        end != text.data() + text.size()) {
      // 8.0 for a number of things
      double real = 0;
      auto [real_end, real_error] = std::from_chars(text.data(), text.data() + text.size(), real);
      if (value->is(JsonValue::Kind::kNumber) && real_error == std::errc() &&
          real_end == text.data() + text.size() && real == std::floor(real))
        return static_cast<Number>(real);
      fail(name, "must be a number");
      return std::nullopt;
    }
    return found;
  }
  std::int64_t size(std::string_view name, std::optional<std::int64_t> otherwise = std::nullopt) {
    std::optional<std::int64_t> found = number<std::int64_t>(name);
    if (!found) found = otherwise;
    if (!found) fail(name, "is missing");
    if (found && *found < 1) fail(name, cat("is ", *found, ", but must be positive"));
    return found.value_or(1);
  }
  bool truth(std::string_view name, bool otherwise) {
    const JsonValue* value = find(name);
    if (!value) return otherwise;
    if (!value->is(JsonValue::Kind::kBool)) fail(name, "must be true or false");
    return value->truth;
  }
  std::string text(std::string_view name, std::string otherwise) {
    const JsonValue* value = find(name);
    if (!value) return otherwise;
    if (!value->is(JsonValue::Kind::kString)) fail(name, "must be a string");
    return value->text;
  }
  void ignore(std::string_view name) { known_.insert(std::string(name)); }
  void fail(std::string_view name, std::string_view what) {
    wrong_ += cat("\n  ", prefix_, name, " ", what);
  }
  // Members that nothing has asked for.
  void check_unknown() {
    for (const JsonMember& member : object_.members) {
      if (known_.count(member.name) || member.value.is(JsonValue::Kind::kNull)) continue;
      fail(member.name, "is unknown, so it may change the results");
    }
  }

 private:
  const JsonValue& object_;
  std::string prefix_;
  std::string& wrong_;
  std::set<std::string, std::less<>> known_;
};

std::string expected_of(std::string_view value, std::string_view supported) {
  return cat("is \"", value, "\"; supported: ", supported);
}

// The context of yarn's attention factor (Peng et al., 2023, section 3.4).
double yarn_attention_factor(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

Rope read_rope(const JsonValue& object, std::string prefix, double theta, const Config& config,
               std::string& wrong) {
  Reader reader(object, std::move(prefix), wrong);
  Rope rope;
  rope.theta = reader.number<double>("rope_theta").value_or(theta);
  std::string old = reader.text("type", "default");
  rope.scaling = reader.text("rope_type", old);
  if (double part = reader.number<double>("partial_rotary_factor").value_or(1); part != 1)
    reader.fail("partial_rotary_factor", cat("is ", part, "; supported: 1"));
  bool scaled = rope.scaling == "linear" || rope.scaling == "llama3" || rope.scaling == "yarn";
  if (!scaled && rope.scaling != "default")
    reader.fail("rope_type", expected_of(rope.scaling, "default, linear, llama3, yarn"));
  std::optional<double> factor = reader.number<double>("factor");
  rope.original_context =
      reader.number<std::int64_t>("original_max_position_embeddings").value_or(config.context);
  if (scaled) {
    if (!factor && rope.scaling == "yarn")
      factor = static_cast<double>(config.context) / static_cast<double>(rope.original_context);
    if (!factor) reader.fail("factor", "is missing");
    rope.factor = factor.value_or(1);
    if (!(rope.factor > 0))
      reader.fail("factor", cat("is ", rope.factor, ", but must be positive"));
  }
  if (rope.scaling == "llama3") {
    rope.low_frequency_factor = reader.number<double>("low_freq_factor").value_or(1);
    rope.high_frequency_factor = reader.number<double>("high_freq_factor").value_or(4);
    if (!(rope.low_frequency_factor < rope.high_frequency_factor))
      reader.fail("low_freq_factor",
                  cat("is ", rope.low_frequency_factor, ", but must be below high_freq_factor, ",
                      rope.high_frequency_factor));
  }
  if (rope.scaling == "yarn") {
    rope.beta_fast = reader.number<double>("beta_fast").value_or(32);
    rope.beta_slow = reader.number<double>("beta_slow").value_or(1);
    rope.truncate = reader.truth("truncate", true);
    std::optional<double> scale = reader.number<double>("mscale");
    std::optional<double> all = reader.number<double>("mscale_all_dim");
    std::optional<double> given = reader.number<double>("attention_factor");
    if (given)
      rope.attention_factor = *given;
    else if (scale.value_or(0) != 0 && all.value_or(0) != 0)
      rope.attention_factor =
          yarn_attention_factor(rope.factor, *scale) / yarn_attention_factor(rope.factor, *all);
    else
      rope.attention_factor = yarn_attention_factor(rope.factor, 1);
  }
  reader.check_unknown();
  return rope;
}

bool is_gemma(Family family) { return family == Family::kGemma2 || family == Family::kGemma3; }

// Files of newer versions have rope_parameters, of older ones rope_theta and rope_scaling.
void read_ropes(Reader& reader, Config& config, std::string& wrong) {
  bool gemma3 = config.family == Family::kGemma3;
  double theta = reader.number<double>("rope_theta")
                     .value_or(gemma3 || config.family == Family::kMixtral ? 1e6 : 1e4);
  double local = reader.number<double>("rope_local_base_freq").value_or(1e4);
  JsonValue empty;
  empty.kind = JsonValue::Kind::kObject;
  const JsonValue* scaling = reader.find("rope_scaling");
  const JsonValue* parameters = reader.find("rope_parameters");
  auto of = [&](const JsonValue* value, const char* name, double base) {
    return read_rope(value ? *value : empty, cat(name, "."), base, config, wrong);
  };
  if (!gemma3) {
    config.rope =
        parameters ? of(parameters, "rope_parameters", theta) : of(scaling, "rope_scaling", theta);
    config.local_rope = config.rope;
    return;
  }
  if (!parameters) {
    config.rope = of(scaling, "rope_scaling", theta);
    config.local_rope = of(nullptr, "rope_scaling", local);
    return;
  }
  Reader kinds(*parameters, "rope_parameters.", wrong);
  config.rope = of(kinds.find("full_attention"), "rope_parameters.full_attention", theta);
  config.local_rope =
      of(kinds.find("sliding_attention"), "rope_parameters.sliding_attention", local);
  if (config.rope.attention_factor != config.local_rope.attention_factor)
    kinds.fail("full_attention", "has another attention_factor than sliding_attention");
  kinds.check_unknown();
}

// The window of each layer.
void read_windows(Reader& reader, Config& config) {
  std::optional<std::int64_t> window = reader.number<std::int64_t>("sliding_window");
  // Defaults of the families.
  if (!reader.has("sliding_window") &&
      (config.family == Family::kMistral || is_gemma(config.family)))
    window = 4096;
  if (window && *window < 1)
    reader.fail("sliding_window", cat("is ", *window, ", but must be positive"));
  bool qwen = config.family == Family::kQwen2 || config.family == Family::kQwen3 ||
              config.family == Family::kQwen3Moe;
  std::int64_t first = 0;
  if (qwen) {
    bool used = reader.truth("use_sliding_window", false);
    if (!used) window.reset();
    std::int64_t full = reader.number<std::int64_t>("max_window_layers").value_or(0);
    if (config.family != Family::kQwen3Moe) first = full;
  }
  const std::int64_t pattern =
      reader.number<std::int64_t>("sliding_window_pattern")
          .value_or(reader.number<std::int64_t>("_sliding_window_pattern")
                        .value_or(config.family == Family::kGemma3 ? 6 : 2));
  const JsonValue* types = reader.find("layer_types");
  if (types && static_cast<std::int64_t>(types->elements.size()) != config.layers)
    reader.fail("layer_types", cat("has ", types->elements.size(), " elements, but there are ",
                                   config.layers, " layers"));
  for (std::int64_t i = 0; i < config.layers; ++i) {
    bool sliding = is_gemma(config.family) ? (i + 1) % pattern != 0 : i >= first;
    if (types && i < static_cast<std::int64_t>(types->elements.size())) {
      const std::string& type = types->elements[static_cast<std::size_t>(i)].text;
      sliding = type == "sliding_attention";
      if (!sliding && type != "full_attention")
        reader.fail("layer_types", expected_of(type, "full_attention, sliding_attention"));
      if (sliding && !window)
        reader.fail("layer_types", "has sliding_attention, but no sliding_window");
    }
    config.windows.push_back(sliding ? window : std::nullopt);
  }
}

void read_quantization(Reader& reader, Config& config, std::string& wrong) {
  const JsonValue* value = reader.find("quantization_config");
  if (!value) return;
  Reader q(*value, "quantization_config.", wrong);
  std::string method = q.text("quant_method", "");
  Quantization& out = config.quantization;
  out.bits = q.size("bits");
  out.group = q.number<std::int64_t>("group_size").value_or(128);
  if (out.group != -1 && out.group < 1)
    q.fail("group_size", cat("is ", out.group, ", but must be positive, or -1 for all inputs"));
  if (method == "gptq") {
    out.method = Quantization::Method::kGptq;
    std::string format = q.text("checkpoint_format", "gptq");
    out.zero_minus_one = format == "gptq";
    if (format != "gptq" && format != "gptq_v2")
      q.fail("checkpoint_format", expected_of(format, "gptq, gptq_v2"));
    if (out.bits != 4 && out.bits != 8) q.fail("bits", cat("is ", out.bits, "; supported: 4, 8"));
  } else if (method == "awq") {
    out.method = Quantization::Method::kAwq;
    out.zero_minus_one = false;
    std::string version = q.text("version", "gemm");
    if (version != "gemm" && version != "GEMM") q.fail("version", expected_of(version, "gemm"));
    if (!q.truth("zero_point", true)) q.fail("zero_point", "is false; supported: true");
    if (out.bits != 4) q.fail("bits", cat("is ", out.bits, "; supported: 4"));
    if (q.find("modules_to_not_convert")) q.fail("modules_to_not_convert", "is not supported");
  } else {
    q.fail("quant_method", expected_of(method, "gptq, awq"));
  }
  // How the quantized weights were found.
  for (const char* name : {"desc_act",
                           "sym",
                           "damp_percent",
                           "dataset",
                           "true_sequential",
                           "static_groups",
                           "model_seqlen",
                           "block_name_to_quantize",
                           "module_name_preceding_first_block",
                           "batch_size",
                           "tokenizer",
                           "use_cuda_fp16",
                           "cache_block_outputs",
                           "exllama_config",
                           "use_exllama",
                           "max_input_length",
                           "pad_token_id",
                           "meta",
                           "quantizer",
                           "model_name_or_path",
                           "model_file_base_name",
                           "is_marlin_format",
                           "backend",
                           "do_fuse",
                           "fuse_max_seq_len",
                           "modules_in_block_to_quantize",
                           "lm_head",
                           "pack_dtype",
                           "format",
                           "act_group_aware",
                           "hyb_act"})
    q.ignore(name);
  if (const JsonValue* head = value->find("lm_head"); head && head->truth)
    q.fail("lm_head", "is true; supported: false");
  q.check_unknown();
}

void read_experts(Reader& reader, Config& config) {
  if (config.family == Family::kMixtral) {
    config.experts = reader.size("num_local_experts", 8);
    config.experts_used = reader.size("num_experts_per_tok", 2);
    config.expert_hidden = config.hidden;
  } else if (config.family == Family::kQwen3Moe) {
    config.experts = reader.number<std::int64_t>("num_local_experts").value_or(0);
    if (config.experts == 0)
      config.experts = reader.size("num_experts", 128);
    else
      reader.ignore("num_experts");
    config.experts_used = reader.size("num_experts_per_tok", 8);
    config.expert_hidden = reader.size("moe_intermediate_size");
    config.normalized_experts = reader.truth("norm_topk_prob", false);
    if (std::int64_t step = reader.size("decoder_sparse_step", 1); step != 1)
      reader.fail("decoder_sparse_step", cat("is ", step, "; supported: 1"));
    const JsonValue* dense = reader.find("mlp_only_layers");
    if (dense && !dense->elements.empty())
      reader.fail("mlp_only_layers", "is not empty: all layers must have experts");
  } else {
    return;
  }
  if (config.experts_used > config.experts)
    reader.fail("num_experts_per_tok",
                cat("is ", config.experts_used, ", but there are ", config.experts, " experts"));
}

void read_tokens(Reader& reader, Config& config) {
  if (const JsonValue* end = reader.find("eos_token_id")) {
    if (end->is(JsonValue::Kind::kArray)) {
      for (const JsonValue& each : end->elements)
        if (std::optional<std::uint64_t> id = each.whole_number())
          config.end_tokens.push_back(static_cast<std::int64_t>(*id));
    } else if (std::optional<std::int64_t> id = reader.number<std::int64_t>("eos_token_id")) {
      config.end_tokens.push_back(*id);
    }
  }
  config.begin_token = reader.number<std::int64_t>("bos_token_id");
}

void read_sizes(Reader& reader, Config& config) {
  config.vocabulary = reader.size("vocab_size");
  config.width = reader.size("hidden_size");
  config.hidden = reader.size("intermediate_size");
  config.layers = reader.size("num_hidden_layers");
  config.heads = reader.size("num_attention_heads");
  config.key_heads = config.family == Family::kLlama
                         ? reader.size("num_key_value_heads", config.heads)
                         : reader.size("num_key_value_heads");
  config.head_size = reader.size(
      "head_dim",
      is_gemma(config.family) ? 256 : std::max<std::int64_t>(1, config.width / config.heads));
  config.context = reader.size("max_position_embeddings", 2048);
  config.norm_epsilon = reader.number<double>("rms_norm_eps")
                            .value_or(config.family == Family::kMixtral ? 1e-5 : 1e-6);
  config.attention_dropout = reader.number<double>("attention_dropout").value_or(0);
  if (config.heads % config.key_heads != 0)
    reader.fail("num_attention_heads", cat("is ", config.heads, ", not a multiple of the ",
                                           config.key_heads, " key heads"));
  if (config.head_size % 2 != 0)
    reader.fail("head_dim", cat("is ", config.head_size, ", an odd number"));
  std::string dtype = reader.text("dtype", reader.text("torch_dtype", "float32"));
  if (dtype == "bfloat16")
    config.dtype = DType::bf16;
  else if (dtype == "float16")
    config.dtype = DType::f16;
  else if (dtype != "float32")
    reader.fail("dtype", expected_of(dtype, "float32, bfloat16, float16"));
}

void read_family(Reader& reader, Config& config) {
  Family family = config.family;
  bool gemma = is_gemma(family);
  config.activation = reader.text("hidden_act", gemma ? "gelu_pytorch_tanh" : "silu");
  config.activation = reader.text("hidden_activation", config.activation);
  if (config.activation != "silu" && config.activation != "gelu_pytorch_tanh" &&
      config.activation != "gelu")
    reader.fail(gemma ? "hidden_activation" : "hidden_act",
                expected_of(config.activation, "silu, gelu, gelu_pytorch_tanh"));
  config.tied_embedding = reader.truth("tie_word_embeddings", gemma);
  bool bias = reader.truth("attention_bias", false);
  config.qkv_bias = bias || family == Family::kQwen2;
  config.out_bias = bias;
  config.mlp_bias = reader.truth("mlp_bias", false);
  config.qk_norm =
      family == Family::kQwen3 || family == Family::kQwen3Moe || family == Family::kGemma3;
  config.post_norms = config.norm_adds_one = config.scaled_embedding = gemma;
  double scalar = static_cast<double>(config.head_size);
  if (gemma) {
    scalar = reader.number<double>("query_pre_attn_scalar").value_or(256);
    config.attention_cap = reader.number<double>("attn_logit_softcapping");
    config.logits_cap = reader.number<double>("final_logit_softcapping");
    if (family == Family::kGemma2 && !reader.has("attn_logit_softcapping"))
      config.attention_cap = 50;
    if (family == Family::kGemma2 && !reader.has("final_logit_softcapping")) config.logits_cap = 30;
    if (reader.truth("use_bidirectional_attention", false))
      reader.fail("use_bidirectional_attention", "is true; supported: false");
  }
  config.query_scale = 1 / std::sqrt(scalar);
}

}  // namespace

bool Config::has_windows() const {
  return std::any_of(windows.begin(), windows.end(),
                     [](const auto& each) { return each.has_value(); });
}

Result<Config> parse_config(std::string_view text, std::string_view place) {
  MESHARD_ASSIGN_OR_RETURN(JsonValue object, read_json(text, place));
  std::string wrong;
  Reader reader(object, "", wrong);
  Config config;
  config.text = text;
  std::string type = reader.text("model_type", "");
  auto family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                             [&](const auto& each) { return each.first == type; });
  if (family == std::end(kFamilies)) {
    std::string known;
    for (const auto& [name, unused] : kFamilies) known += cat(known.empty() ? "" : ", ", name);
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", place, "] model_type ", expected_of(type, known)));
  }
  config.family = family->second;
  for (std::string_view name : kHarmless) reader.ignore(name);
  reader.ignore("pretraining_tp");
  if (std::int64_t parts = reader.number<std::int64_t>("pretraining_tp").value_or(1); parts < 1)
    reader.fail("pretraining_tp", cat("is ", parts));

  read_sizes(reader, config);
  read_family(reader, config);
  read_windows(reader, config);
  read_ropes(reader, config, wrong);
  read_experts(reader, config);
  read_quantization(reader, config, wrong);
  if (config.quantization.method != Quantization::Method::kNone && config.experts > 0)
    reader.fail("quantization_config", "of a model with experts is not supported");
  read_tokens(reader, config);
  reader.check_unknown();
  if (!wrong.empty())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", place, "] this model cannot be used:", wrong));
  return config;
}

Result<Config> read_config(const std::string& folder) {
  std::string path = std::filesystem::path(folder) / "config.json";
  MESHARD_ASSIGN_OR_RETURN(std::string text, read_whole_file(path));
  return parse_config(text, path);
}

std::int64_t count_weights(const Config& c) {
  std::int64_t attention = c.width * c.head_size * (2 * c.heads + 2 * c.key_heads);
  std::int64_t mlp =
      c.experts > 0 ? c.experts * (3 * c.expert_hidden + 1) * c.width : 3 * c.hidden * c.width;
  return c.layers * (attention + mlp) + c.vocabulary * c.width * (c.tied_embedding ? 1 : 2);
}

}  // namespace llm
