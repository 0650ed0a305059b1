#include "tools/conformance/txla/placed_shards.h"

#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/state.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLargestWithData = 64;

std::int64_t length_of(const Json& range) {
  return range[1].get<std::int64_t>() - range[0].get<std::int64_t>();
}

}  // namespace

Tensor placed(const Json& input, const Sharding& sharding) {
  HostArray array = host_array_of(input.at("data"), shape_of(input.at("global_shape")),
                                  dtype_named(input.at("dtype").get<std::string>()));
  return mark_sharding(from_host(std::move(array)), sharding);
}

Json shards_on_devices(const Tensor& tensor) {
  Json shards = shards_of(tensor);
  for (Json& shard : shards) {
    const Json &shape = shard.at("shape"), &indices = shard.at("indices");
    Json padding = Json::array();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t size = shape[d];
      padding.push_back(indices == "all" ? 0 : size - length_of(indices[d]));
    }
    shard["pad_high"] = padding;
    if (tensor.shape().size() > kLargestWithData) shard.erase("data");
  }
  return shards;
}

}  // namespace meshard::conformance
