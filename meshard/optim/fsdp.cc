#include "meshard/optim/fsdp.h"

#include "meshard/graph/abstract_tensor.h"

namespace meshard::optim::internal {

Tensor fsdp_layout(const Tensor& parameter, const FsdpOptions& options) {
  Tensor split = split_further(parameter, options.axis);  // called for every parameter, because it
                                                          // checks the axis
  if (parameter.shape().size() >= options.smallest) return split;
  return abstract_tensor(parameter.type(), parameter.sharding());
}

}  // namespace meshard::optim::internal
