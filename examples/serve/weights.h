// A model of examples/gpt from safetensors files.
#pragma once
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace serve {

/// The sizes of the model in a file, from the shapes of its tensors.
/// @error invalid argument if they are not those of such a model.
meshard::Result<gpt::Sizes> sizes_of(const meshard::io::Weights& weights);

/// The parameters, each on its devices, where they are read straight from the file. Weights of a
/// training are found too.
/// @error as io::restore
meshard::Result<gpt::Gpt> load_model(const std::string& path, const meshard::nn::AxisRules& rules);

}  // namespace serve
