// Loads a model of examples/gpt from safetensors files.
#pragma once
#include <cstdint>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace serve {

/// The sizes of the model in a file, derived from the shapes of its tensors.
/// @error invalid argument if the tensors are not those of such a model.
meshard::Result<gpt::Sizes> sizes_of(const meshard::io::Weights& weights);

/// The default context length, as in examples/gpt.
inline constexpr std::int64_t kContext = 64;

/// The context length stored in a file; kContext if it has none.
meshard::Result<std::int64_t> context_of(const meshard::io::Weights& weights);

/// Loads the parameters onto their devices, directly from the file. The file is a checkpoint of
/// examples/gpt, whose optimizer state is ignored, or has only the model's parameters.
/// @param context 0: the value of context_of()
/// @error as io::Weights::open, sizes_of and io::restore
meshard::Result<gpt::Trained> load_model(const std::string& path,
                                         const meshard::nn::AxisRules& rules,
                                         std::int64_t context = 0);

}  // namespace serve
