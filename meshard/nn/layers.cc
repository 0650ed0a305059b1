#include "meshard/nn/layers.h"

#include "meshard/base/error.h"
#include "meshard/ops/slicing.h"

namespace meshard::nn::internal {

std::int64_t num_layers(std::span<const Tensor> stacked, SourceLocation where) {
  where = effective_source(where);
  if (stacked.empty()) throw_invalid(where, "[nn.Layers] the layers have no tensors");
  std::int64_t count = 0;
  for (const Tensor& each : stacked) {
    const TensorType& type = each.type(where);
    if (type.rank() == 0)
      throw_invalid(where, "[nn.Layers] a stacked tensor is ", type,
                    ": its first dimension must be the number of layers");
    if (&each != &stacked[0] && type.shape[0] != count)
      throw_invalid(where, "[nn.Layers] the first stacked tensor, ", stacked[0].type(), ", has ",
                    count, " layers, but another one, ", type, ", has ", type.shape[0]);
    count = type.shape[0];
  }
  return count;
}

std::vector<Tensor> layer_of(std::span<const Tensor> stacked, std::int64_t layer,
                             SourceLocation where) {
  where = effective_source(where);
  std::int64_t count = num_layers(stacked, where);
  if (layer < 0 || layer >= count)
    throw Error(ErrorCode::kOutOfRange,
                cat("[nn.Layers] there is no layer ", layer, ": the number of layers is ", count),
                where);
  std::vector<Tensor> slices;
  for (const Tensor& each : stacked) slices.push_back(layer_slice(In(each, where), layer));
  return slices;
}

}  // namespace meshard::nn::internal
