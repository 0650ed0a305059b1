// The parts of a tensor, device by device.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A handle on what one device holds of a tensor. Keeps the tensor alive; copies nothing until
/// asked.
///
/// @code
/// Mesh mesh({{"data", 2}});
/// Tensor x = mark_sharding(from_host(std::vector<float>{1, 2, 3}, {3}), mesh, P("data"));
/// for (const Shard& shard : local_shards(x))
///   std::cout << shard.device_id() << ": " << shard.data().to_string() << "\n";
/// @endcode
/// prints `0: [1, 2] f32[2]` and `1: [3] f32[1]`.
class Shard {
 public:
  /// Its place in the mesh's order.
  std::int64_t position() const { return position_; }
  int device_id() const { return device_id_; }
  /// How many earlier positions hold the same part.
  std::int64_t replica_id() const { return replica_id_; }
  /// Which elements of the tensor it holds; late shards of an uneven size can be empty.
  const Box& box() const { return box_; }

  /// Its elements, copied to the host. @error failed precondition if the tensor was donated or
  /// deleted.
  HostArray data(SourceLocation where = SourceLocation::current()) const;
  /// The same with the padding that it has on the device; all shards have this one shape. What the
  /// padding holds is not defined.
  HostArray padded_data(SourceLocation where = SourceLocation::current()) const;

 private:
  friend std::vector<Shard> local_shards(const Tensor& tensor, SourceLocation where);
  Tensor tensor_;
  std::int64_t position_ = 0;
  int device_id_ = 0;
  std::int64_t replica_id_ = 0;
  Box box_;
};

/// The shards on the devices of this process, in the mesh's order; computes the tensor if it is
/// only recorded. A tensor on one device is one shard; one that is still on the host has none.
/// @error what computing it meets.
std::vector<Shard> local_shards(const Tensor& tensor,
                                SourceLocation where = SourceLocation::current());

}  // namespace meshard
