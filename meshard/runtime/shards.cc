#include "meshard/runtime/shards.h"

#include <algorithm>
#include <map>

#include "meshard/graph/evaluator.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/tiles.h"

namespace meshard {

std::vector<HeldPart> held_parts(const Tensor& tensor, SourceLocation where) {
  compute(std::span(&tensor, 1), where);
  const Storage& storage = computed_storage(tensor.value(), where);
  const Shape& shape = tensor.shape();
  const Sharding* sharding =
      storage.kind() == Storage::Kind::kDevice ? storage.sharding() : nullptr;
  if (!sharding || shape.size() == 0) return {{whole_box(shape), {0}}};
  const Mesh& mesh = sharding->mesh();
  const pjrt::Client& client = process_runtime().platforms.client(mesh, where);
  std::map<std::int64_t, HeldPart> by_tile;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    HeldPart& part = by_tile[tile_number(*sharding, p)];
    if (part.processes.empty()) part.box = box_of(*sharding, shape, p);
    part.processes.push_back(device_of(client, mesh.device_id(p), where).process_index());
  }
  std::vector<HeldPart> parts;
  for (auto& [tile, part] : by_tile) {
    if (box_shape(part.box).size() == 0) continue;
    std::sort(part.processes.begin(), part.processes.end());
    part.processes.erase(std::unique(part.processes.begin(), part.processes.end()),
                         part.processes.end());
    parts.push_back(std::move(part));
  }
  return parts;
}

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

std::size_t num_copies(const Tensor& tensor) {
  const Storage* storage = tensor.value().storage();
  return storage ? num_copies(*storage) : 0;
}

}  // namespace meshard
