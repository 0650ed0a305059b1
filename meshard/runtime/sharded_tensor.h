// A tensor seen as its shards: made of them, taken apart into them.
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

/// A handle on a tensor that has a sharding. It is that tensor wherever one is wanted; besides, its
/// shards can be read, replaced, and given one by one to make it. Shards are listed in the mesh's
/// order; a shard may come as its own part of the value or padded to the shard shape.
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

  /// A value of one host array per position of the mesh, each sent to its own device.
  /// @param shape of the whole value; none: as many tiles as the spec makes, of whole shards
  /// @error invalid argument for no or another number of shards, one of another dtype or shape, a
  /// shape that these shards do not tile.
  static ShardedTensor from_shards(std::span<const HostArray> shards, const Mesh& mesh,
                                   const PartitionSpec& spec,
                                   const std::optional<Shape>& shape = std::nullopt,
                                   SourceLocation where = SourceLocation::current());
  /// A value whose parts `make` gives: it is called once for each different part (a box of the
  /// value; empty ones are left out) on the calling thread, and the part is sent to all devices
  /// that hold it. Nothing whole is ever made.
  /// @error invalid argument if `make` gives another dtype or shape than the box's.
  static ShardedTensor from_callback(const TensorType& type, const Sharding& sharding,
                                     const std::function<HostArray(const Box& box)>& make,
                                     SourceLocation where = SourceLocation::current());
  /// A value of one tensor per position of the mesh: tensors that lie on their devices already stay
  /// there and are not copied where the plugin can view them; others are sent.
  /// @error as from_shards
  static ShardedTensor from_local(std::span<const Tensor> locals, const Mesh& mesh,
                                  const PartitionSpec& spec,
                                  const std::optional<Shape>& shape = std::nullopt,
                                  SourceLocation where = SourceLocation::current());

  const Tensor& global() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }  // NOLINT: it is that tensor
  const TensorType& type() const { return tensor_.type(); }
  const Sharding& sharding() const { return sharding_; }

  /// The shards on the devices of this process; computes the tensor if it is only recorded.
  std::vector<Shard> local_shards(SourceLocation where = SourceLocation::current()) const;
  /// New contents for this handle, shard by shard. Copies of the handle keep the old value.
  /// @error invalid argument for another number of shards, or one of another dtype or shape; failed
  /// precondition for a replicated tensor: its devices hold copies of one value, not shards.
  void load_local_shards(std::span<const HostArray> shards,
                         SourceLocation where = SourceLocation::current());

 private:
  Tensor tensor_;
  Sharding sharding_;
};

/// The tensor as a ShardedTensor, if it has a sharding.
std::optional<ShardedTensor> wrap_if_sharded(const Tensor& tensor);

}  // namespace meshard
