// What config.json says about a language model.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/meshard.h"

namespace llm {

/// The families of models, by `model_type`.
enum class Family : std::uint8_t {
  kLlama,
  kMistral,
  kQwen2,
  kQwen3,
  kGemma2,
  kGemma3,
  kMixtral,
  kQwen3Moe,
};

/// Rotary position embedding of one kind of layers.
struct Rope {
  double theta = 10000;
  std::string scaling = "default";  ///< default, linear, llama3 or yarn
  double factor = 1;
  /// For llama3 and yarn: the context before scaling.
  std::int64_t original_context = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4;  ///< of llama3
  double beta_fast = 32, beta_slow = 1;                        ///< of yarn
  bool truncate = true;                                        ///< of yarn
  double attention_factor = 1;                                 ///< of yarn: of cosines and sines
  friend bool operator==(const Rope&, const Rope&) = default;
};

/// The angles per position of a head's pairs of elements.
/// Sources: linear, Chen et al. (2023), "Extending Context Window of Large Language Models via
/// Positional Interpolation"; yarn, Peng et al. (2023); llama3, the model card of Llama 3.1.
std::vector<float> frequencies(const Rope& rope, std::int64_t head_size);

/// How the weights of the linear layers are stored.
struct Quantization {
  enum class Method : std::uint8_t { kNone, kGptq, kAwq };
  Method method = Method::kNone;
  std::int64_t bits = 4;
  std::int64_t group = 128;  ///< inputs that share a scale; -1: all
  /// GPTQ's first format stores each zero point minus 1.
  bool zero_minus_one = true;
};

/// The mathematics of a model: sizes, and what its layers do.
struct Config {
  Family family = Family::kLlama;
  std::int64_t vocabulary = 0, width = 0, hidden = 0, layers = 0;
  std::int64_t heads = 0, key_heads = 0, head_size = 0;
  std::int64_t context = 0;  ///< the longest sequence that the model was made for
  double norm_epsilon = 1e-6;
  std::string activation = "silu";  ///< silu, gelu_pytorch_tanh or gelu
  bool tied_embedding = false;
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;
  bool post_norms = false;        ///< norms after attention and MLP too
  bool norm_adds_one = false;     ///< norms multiply by 1 + weight
  bool scaled_embedding = false;  ///< embeddings are multiplied by sqrt(width)
  double query_scale = 0;         ///< factor of the products of queries and keys
  std::optional<double> attention_cap, logits_cap;
  Rope rope;        ///< of layers that see the whole context
  Rope local_rope;  ///< of layers with a window
  /// For each layer, how many positions it sees (with its own); nullopt: all.
  std::vector<std::optional<std::int64_t>> windows;
  std::int64_t experts = 0;  ///< 0: the MLPs are dense
  std::int64_t experts_used = 0, expert_hidden = 0;
  bool normalized_experts = true;  ///< the probabilities of the used experts sum to 1
  meshard::DType dtype = meshard::DType::f32;
  Quantization quantization;
  double attention_dropout = 0;  ///< in training only
  std::vector<std::int64_t> end_tokens;
  std::optional<std::int64_t> begin_token;
  std::string text;  ///< config.json as read

  bool has_windows() const;
};

/// Reads the text of config.json.
/// @error invalid argument, all at once: an unknown model_type; fields that are unknown and not
/// known to be without effect on the results; values that this program does not support; sizes that
/// do not fit together
meshard::Result<Config> parse_config(std::string_view text, std::string_view place);

/// Reads FOLDER/config.json. @error as parse_config; not found
meshard::Result<Config> read_config(const std::string& folder);

/// Number of parameters, without biases and norms.
std::int64_t count_weights(const Config& config);

}  // namespace llm
