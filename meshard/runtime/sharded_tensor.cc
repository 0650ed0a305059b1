#include "meshard/runtime/sharded_tensor.h"

#include <map>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/transfer_by_pieces.h"
#include "meshard/runtime/tiles.h"
#include "meshard/sharding/axis_moves.h"

namespace meshard {
namespace {

Sharding sharding_of(const Tensor& tensor, SourceLocation where) {
  if (std::optional<Sharding> known = tensor.sharding()) return *std::move(known);
  throw_invalid(where, "[sharded_tensor] ", tensor.type(where), " made at ", tensor.where(),
                " has no sharding: mark it first");
}

// The type of the whole value whose shards have the type `shard`.
TensorType whole_type(const TensorType& shard, const Sharding& sharding,
                      const std::optional<Shape>& shape, SourceLocation where) {
  auto rank = static_cast<std::size_t>(shard.rank());
  if (sharding.rank() > rank || (shape && static_cast<std::size_t>(shape->rank()) != rank))
    throw_invalid(where, "[sharded_tensor] shards of rank ", rank, " cannot make a value ",
                  shape ? shape->to_string() : std::string("of that rank"), " with ", sharding);
  if (shape) return {shard.dtype, *shape};
  Dimensions sizes = shard.shape.sizes();
  for (std::size_t d = 0; d < rank; ++d) sizes[d] *= sharding.num_tiles(d);
  return {shard.dtype, Shape(std::move(sizes))};
}

// The shards of this process, from a list of them or of those of all processes.
template <class T>
std::vector<T> own_shards(std::span<const T> shards, const Mesh& mesh, SourceLocation where) {
  const pjrt::Client& client = process_runtime().platforms.client(mesh, where);
  std::vector<LocalPosition> positions = local_positions(client, mesh, where);
  if (shards.size() == positions.size()) return {shards.begin(), shards.end()};
  if (std::ssize(shards) != mesh.size())
    throw_invalid(where, "[sharded_tensor] ", shards.size(), " shards for the ", mesh.size(),
                  " devices of ", mesh,
                  std::ssize(positions) == mesh.size()
                      ? std::string()
                      : cat(", of which this process has ", positions.size()));
  std::vector<T> own;
  for (const LocalPosition& at : positions)
    own.push_back(shards[static_cast<std::size_t>(at.position)]);
  return own;
}

ShardedTensor stored(const TensorType& type, StoragePtr storage, SourceLocation where) {
  return ShardedTensor(make_array(type, std::move(storage), where), where);
}

}  // namespace

ShardedTensor::ShardedTensor(Tensor tensor, SourceLocation where)
    : tensor_(std::move(tensor)), sharding_(sharding_of(tensor_, where)) {}

ShardedTensor ShardedTensor::from_shards(std::span<const HostArray> shards, const Mesh& mesh,
                                         const PartitionSpec& spec,
                                         const std::optional<Shape>& shape, SourceLocation where) {
  if (shards.empty()) throw_invalid(where, "[sharded_tensor] no shards were given for ", mesh);
  std::vector<HostArray> own = own_shards(shards, mesh, where);
  Sharding sharding(mesh, spec, static_cast<std::size_t>(shards[0].shape().rank()), where);
  TensorType type = whole_type(shards[0].type(), sharding, shape, where);
  return stored(type, place_shards(process_runtime().platforms, type, sharding, own, where), where);
}

ShardedTensor ShardedTensor::from_callback(const TensorType& type, const Sharding& sharding,
                                           const std::function<HostArray(const Box&)>& make,
                                           SourceLocation where) {
  if (sharding.rank() > static_cast<std::size_t>(type.rank()))
    throw_invalid(where, "[sharded_tensor] ", sharding, " describes ", sharding.rank(),
                  " dimensions, ", type, " has ", type.rank());
  Sharding full = sharding.with_rank(static_cast<std::size_t>(type.rank()), where);
  const AxesIndex summand(full.mesh(), summed_axes(full));
  std::vector<HostArray> shards;
  std::map<std::vector<std::int64_t>, std::size_t> made;  // by the start of the part
  const pjrt::Client& client = process_runtime().platforms.client(full.mesh(), where);
  for (const LocalPosition& at : local_positions(client, full.mesh(), where)) {
    Box box = box_of(full, type.shape, at.position);
    // The value is the sum of the shards along these axes, and the callback makes all of it.
    if (box_shape(box).size() == 0 || summand(at.position) != 0) {
      shards.push_back(HostArray::zeros({type.dtype, box_shape(box)}));
      continue;
    }
    std::vector<std::int64_t> start;
    for (const DimensionSlice& slice : box) start.push_back(slice.start);
    auto [known, fresh] = made.try_emplace(std::move(start), shards.size());
    shards.push_back(fresh ? make(box) : shards[known->second]);
    if (fresh && shards.back().type() != TensorType{type.dtype, box_shape(box)})
      throw_invalid(where, "[sharded_tensor] the callback returned ", shards.back().type(),
                    "; this shard of ", type, " must be ", TensorType{type.dtype, box_shape(box)});
  }
  return stored(type, place_shards(process_runtime().platforms, type, full, shards, where), where);
}

ShardedTensor ShardedTensor::from_local(std::span<const Tensor> locals, const Mesh& mesh,
                                        const PartitionSpec& spec,
                                        const std::optional<Shape>& shape, SourceLocation where) {
  if (locals.empty()) throw_invalid(where, "[sharded_tensor] no tensors were given for ", mesh);
  std::vector<Tensor> own = own_shards(locals, mesh, where);
  compute(own, where);
  Sharding sharding(mesh, spec, static_cast<std::size_t>(locals[0].rank()), where);
  TensorType type = whole_type(locals[0].type(), sharding, shape, where);
  Platforms& platforms = process_runtime().platforms;
  const pjrt::Client& client = platforms.client(mesh, where);
  TensorType shard_type = shard_type_of(type, sharding);
  std::vector<LocalPosition> positions = local_positions(client, mesh, where);
  std::vector<pjrt::Buffer> buffers;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const pjrt::Device& device = *positions[i].device;
    const Storage* storage = own[i].value().storage();
    const auto* array = storage->kind() == Storage::Kind::kDevice
                            ? static_cast<const DeviceArray*>(storage)
                            : nullptr;
    if (!array || array->num_shards() != 1 || own[i].type() != shard_type) break;
    Result<pjrt::Buffer> buffer = buffer_on(client, array->buffers()[0], device);
    if (!buffer.ok() && buffer.error().code() == ErrorCode::kUnimplemented) break;
    if (!buffer.ok()) throw buffer.error().at(where);
    buffers.push_back(*std::move(buffer));
  }
  if (buffers.size() == own.size())
    return stored(type, make_storage<DeviceArray>(platforms, type, sharding, std::move(buffers)),
                  where);
  // Host data, missing padding, or memory that cannot be viewed: go through the host.
  std::vector<HostArray> shards;
  for (const Tensor& local : own) shards.push_back(local.to_host(where));
  return stored(type, place_shards(platforms, type, sharding, shards, where), where);
}

std::vector<LocalShard> ShardedTensor::local_shards(SourceLocation where) const {
  return meshard::local_shards(tensor_, where);
}

void ShardedTensor::load_local_shards(std::span<const HostArray> shards, SourceLocation where) {
  if (sharding_.is_fully_replicated() && sharding_.mesh().size() > 1)
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[sharded_tensor] ", type(), " is replicated on ", sharding_.mesh(),
                    ": its devices hold copies of one value, not shards; use assign"),
                where);
  std::vector<HostArray> own = own_shards(shards, sharding_.mesh(), where);
  *this = stored(type(), place_shards(process_runtime().platforms, type(), sharding_, own, where),
                 where);
}

std::optional<ShardedTensor> wrap_if_sharded(const Tensor& tensor) {
  if (!tensor.sharding()) return std::nullopt;
  return ShardedTensor(tensor);
}

std::string ShardedTensor::to_string() const { return cat(type(), " over ", sharding_); }

}  // namespace meshard
