#include "meshard/runtime/shards.h"

#include "meshard/graph/evaluator.h"
#include "meshard/runtime/device_array.h"

namespace meshard {
namespace {

const DeviceArray& array_of(const Tensor& tensor) {
  return static_cast<const DeviceArray&>(*tensor.value().storage());
}

}  // namespace

HostArray LocalShard::data(SourceLocation where) const {
  return array_of(tensor_).shard(index_, where);
}

HostArray LocalShard::padded_data(SourceLocation where) const {
  return array_of(tensor_).padded_shard(index_, where);
}

std::vector<LocalShard> local_shards(const Tensor& tensor, SourceLocation where) {
  compute(std::span(&tensor, 1), where);
  std::vector<LocalShard> shards;
  if (tensor.value().storage()->kind() != Storage::Kind::kDevice) return shards;
  const DeviceArray& array = array_of(tensor);
  const Sharding* sharding = array.sharding();
  for (std::size_t i = 0; i < array.num_shards(); ++i) {
    LocalShard shard;
    shard.tensor_ = tensor;
    shard.index_ = i;
    shard.position_ = array.position(i);
    shard.device_id_ = array.device_id(i);
    shard.replica_id_ = sharding ? sharding->replica_id(shard.position_) : 0;
    shard.box_ = array.box(i);
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::string LocalShard::to_string() const {
  return cat("shard ", position_, replica_id_ > 0 ? cat(" (replica ", replica_id_, ')') : "",
             " on device ", device_id_, ": ", meshard::to_string(box_), " of ", tensor_.type());
}

}  // namespace meshard
