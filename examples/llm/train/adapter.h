// Low-rank adapters in PEFT's layout: adapter_config.json and adapter_model.safetensors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "examples/llm/model/model.h"

namespace llm {

/// The sizes of adapters, and which layers have one (Hu et al.: LoRA, 2022).
struct AdapterConfig {
  std::int64_t rank = 8;
  double alpha = 16;
  /// Of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj.
  std::vector<std::string> targets{"q_proj", "v_proj"};
  bool scaled_by_root =
      false;  ///< alpha / sqrt(rank) instead of alpha / rank (Kalajdzievski, 2023)

  [[nodiscard]] double scale() const;
};

/// Reads FOLDER/adapter_config.json.
/// @error invalid argument, all at once: fields that are unknown or ask for what this program lacks
meshard::Result<AdapterConfig> read_adapter_config(const std::string& folder);

/// New adapters on the devices of the rules: lora_A uniform from -1 / sqrt(inputs) to 1 /
/// sqrt(inputs), as PEFT makes it, and lora_B zeros. Dimension names as those of the weights, and
/// "rank".
/// @error invalid argument: a target that the model does not have; a rank that is not positive
meshard::Result<Adapters> make_adapters(const Config& config, const AdapterConfig& adapter,
                                        const meshard::nn::AxisRules& rules, std::int64_t seed);

/// Reads FOLDER/adapter_model.safetensors. @error as io::restore
meshard::Result<Adapters> load_adapters(const std::string& folder, const Config& config,
                                        const AdapterConfig& adapter,
                                        const meshard::nn::AxisRules& rules);

/// Writes both files to a folder, which is created. @param base the folder of the model
meshard::Result<void> save_adapters(const std::string& folder, const Adapters& adapters,
                                    const AdapterConfig& adapter, const std::string& base);

/// The model with the adapters' changes added to its weights.
/// @error invalid argument for quantized weights
meshard::Result<Model> merged(const Model& model, const Config& config, const Adapters& adapters,
                              double scale);

}  // namespace llm
