#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

struct LayerSliceAttributes {
  std::int64_t layer = 0;
  MESHARD_FIELDS(layer)
};

/// Slice number `layer` of stacked layers, along dimension 0: the parameter of one layer. The value
/// is that of `stacked[layer]`; what is recorded for consecutive layers can become one loop
/// (roll_layers()). Use nn::Layers, which records it for all tensors of a layer.
/// @error a tensor of rank 0; a layer outside of 0..size - 1.
Tensor layer_slice(In stacked, std::int64_t layer);

}  // namespace meshard
