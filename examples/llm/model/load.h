// Reads and writes models in folders as `transformers` does.
#pragma once
#include <string>

#include "examples/llm/model/model.h"

namespace llm {

/// Loads the weights of a folder (model.safetensors, or several files with an index), each device's
/// bytes directly to it. Dense weights are converted to `dtype` on the way; quantized ones stay as
/// they are.
/// @error as io::Weights::open and io::restore: tensors that the model lacks, or that the files
/// lack, with the nearest names; tensors of another shape
meshard::Result<Model> load_model(
    const std::string& folder, const Config& config, const meshard::nn::AxisRules& rules,
    meshard::DType dtype, meshard::SourceLocation where = meshard::SourceLocation::current());

/// Writes config.json and model.safetensors to a folder, which is created. `transformers` loads it.
/// Files of the tokenizer are copied from `origin`, if they are there.
/// @error unimplemented for quantized weights; errors of files
meshard::Result<void> save_model(const std::string& folder, const Model& model,
                                 const Config& config, const std::string& origin);

/// The text of config.json with another dtype.
std::string config_with_dtype(const std::string& text, meshard::DType dtype);

/// The name that config.json gives a dtype: bfloat16.
std::string dtype_name(meshard::DType dtype);

}  // namespace llm
