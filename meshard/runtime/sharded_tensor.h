// A tensor with access to its shards.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"
#include "meshard/runtime/shards.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A handle on a tensor that has a sharding. It converts to that tensor. In addition, the tensor
/// can be made from shards, and its shards can be read and replaced. Shards are listed in mesh
/// order. A shard may be passed unpadded or padded to the shard shape.
///
/// If the mesh has devices of several processes, each process may list only the shards of its own
/// devices. If it lists all of them, it uses its own.
///
/// @code
/// Mesh mesh({{"data", 2}});
/// std::vector<HostArray> parts{HostArray::from_vector<float>({1, 2}),
///                              HostArray::from_vector<float>({3, 4})};
/// ShardedTensor x = ShardedTensor::from_shards(parts, mesh, P("data"));
/// std::cout << x.global().to_string() << "\n";
/// @endcode
/// prints `[1, 2, 3, 4] f32[4]`.
class ShardedTensor {
 public:
  /// @error invalid argument if `tensor` has no sharding; see wrap_if_sharded.
  explicit ShardedTensor(Tensor tensor, SourceLocation where = SourceLocation::current());

  /// Makes a value from one host array per position of the mesh, each sent to its own device.
  /// @param shape shape of the whole value, the same in all processes; none: the spec's number of
  /// tiles, of full shards
  /// @error invalid argument for a wrong number of shards, a shard with another dtype or shape, or
  /// a shape that these shards do not tile.
  static ShardedTensor from_shards(std::span<const HostArray> shards, const Mesh& mesh,
                                   const PartitionSpec& spec,
                                   const std::optional<Shape>& shape = std::nullopt,
                                   SourceLocation where = SourceLocation::current());
  /// Makes a value from the parts that `make` returns. `make` is called on the calling thread, once
  /// for each distinct part (a box of the value; empty ones are skipped) that devices of this
  /// process hold, and the part is sent to them. The whole value is never materialized.
  /// @error invalid argument if `make` returns another dtype, or a shape other than the box's.
  static ShardedTensor from_callback(const TensorType& type, const Sharding& sharding,
                                     const std::function<HostArray(const Box& box)>& make,
                                     SourceLocation where = SourceLocation::current());
  /// Makes a value from one tensor per position of the mesh. Tensors that are already on their
  /// devices stay there and are not copied if the plugin can view them; others are sent.
  /// @error as from_shards
  static ShardedTensor from_local(std::span<const Tensor> locals, const Mesh& mesh,
                                  const PartitionSpec& spec,
                                  const std::optional<Shape>& shape = std::nullopt,
                                  SourceLocation where = SourceLocation::current());

  const Tensor& global() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }  // NOLINT: it is that tensor
  const TensorType& type() const { return tensor_.type(); }
  const Sharding& sharding() const { return sharding_; }
  /// The type and sharding; the value is not read: `f32[8,4] over Sharding(mesh<x=2>, P("x",
  /// none))`.
  std::string to_string() const;

  /// The shards on the devices of this process. Computes the tensor if it is only recorded.
  std::vector<LocalShard> local_shards(SourceLocation where = SourceLocation::current()) const;
  /// Replaces the contents of this handle, shard by shard. Copies of the handle keep the old value.
  /// @error invalid argument for a wrong number of shards, or one with another dtype or shape;
  /// failed precondition for a replicated tensor, whose devices hold copies of one value, not
  /// shards.
  void load_local_shards(std::span<const HostArray> shards,
                         SourceLocation where = SourceLocation::current());

 private:
  Tensor tensor_;
  Sharding sharding_;
};

/// The tensor as a ShardedTensor; none if it has no sharding.
std::optional<ShardedTensor> wrap_if_sharded(const Tensor& tensor);

}  // namespace meshard
