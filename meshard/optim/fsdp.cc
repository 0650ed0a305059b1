#include "meshard/optim/fsdp.h"

#include "meshard/base/error.h"
#include "meshard/graph/abstract_tensor.h"

namespace meshard::optim::internal {

Tensor split_further(const Tensor& parameter, const std::string& axis, std::size_t stacked) {
  std::optional<Sharding> sharding = parameter.sharding();
  if (!sharding)
    throw_invalid(parameter.where(), "[optim.zero_layout] a parameter, ", parameter.type(),
                  ", has no sharding to split further");
  Sharding along(sharding->mesh(), P(axis));  // rejects an axis that the mesh does not have
  std::int64_t count = along.num_tiles();
  std::vector<DimensionSpec> dimensions =
      sharding->with_rank(parameter.shape().rank()).spec().dimensions();
  bool used = false;
  for (const DimensionSpec& dimension : dimensions)
    for (const AxisRef& each : dimension.axes()) used = used || each.name == axis;
  for (std::size_t d = stacked; d < dimensions.size() && !used; ++d) {
    std::int64_t size = parameter.dim(static_cast<std::int64_t>(d));
    if (!dimensions[d].axes().empty() || size == 0 || size % count != 0) continue;
    dimensions[d] = axis;
    used = true;
  }
  return abstract_tensor(parameter.type(),
                         Sharding(sharding->mesh(), PartitionSpec(std::move(dimensions))));
}

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
