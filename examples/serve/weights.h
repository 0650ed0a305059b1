// A model of examples/gpt from safetensors files.
#pragma once
#include <cstdint>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace serve {

/// The sizes of the model in a file, from the shapes of its tensors.
/// @error invalid argument if they are not those of such a model.
meshard::Result<gpt::Sizes> sizes_of(const meshard::io::Weights& weights);

/// How many bytes a model sees at a time if nobody says: the default of examples/gpt.
inline constexpr std::int64_t kContext = 64;

/// What a file says of how many bytes its model sees at a time; kContext if it says nothing.
meshard::Result<std::int64_t> context_of(const meshard::io::Weights& weights);

/// The parameters, each on its devices, where they are read straight from the file: a checkpoint of
/// examples/gpt, of which the optimiser's state is left alone, or the model's parameters without
/// more.
/// @param context 0: what context_of says
/// @error as io::Weights::open, sizes_of and io::restore
meshard::Result<gpt::Trained> load_model(const std::string& path,
                                         const meshard::nn::AxisRules& rules,
                                         std::int64_t context = 0);

}  // namespace serve
