#include "meshard/optim/fsdp.h"

#include "meshard/graph/abstract_tensor.h"

namespace meshard::optim::internal {

Tensor fsdp_layout(const Tensor& parameter, std::size_t stacked, const FsdpOptions& options) {
  Tensor split = split_further(parameter, options.axis, stacked);  // called for every parameter,
                                                                   // because it checks the axis
  std::int64_t size = parameter.shape().size();                    // of one layer
  for (std::size_t d = 0; d < stacked; ++d)
    if (std::int64_t layers = parameter.dim(static_cast<std::int64_t>(d))) size /= layers;
  if (size >= options.smallest) return split;
  return abstract_tensor(parameter.type(), parameter.sharding());
}

}  // namespace meshard::optim::internal
