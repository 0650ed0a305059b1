// The shards of a tensor, by device.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/tensor.h"

namespace meshard {

// Which processes of the run hold which part of a value.

/// One distinct part of a value, and the processes of the run whose devices hold it, ascending.
struct HeldPart {
  Box box;
  std::vector<int> processes;
  friend bool operator==(const HeldPart&, const HeldPart&) = default;
};

/// The distinct parts of a value, in row-major order; together they cover it, and none is empty
/// unless the value is. Equal in all processes. Computes the value if it is only recorded;
/// otherwise nothing communicates. A value of which each process has its own (on the host, without
/// a sharding, or on devices of this process only) counts as held by process 0.
/// @error the errors of computing it
std::vector<HeldPart> held_parts(const Tensor& tensor,
                                 SourceLocation where = SourceLocation::current());

/// A handle on one device's shard of a tensor. Keeps the tensor alive; copies nothing until data()
/// is called.
///
/// @code
/// Mesh mesh({{"data", 2}});
/// Tensor x = mark_sharding(from_host(std::vector<float>{1, 2, 3}, {3}), mesh, P("data"));
/// for (const LocalShard& shard : local_shards(x))
///   std::cout << shard.device_id() << ": " << shard.data().to_string() << "\n";
/// @endcode
/// prints `0: [1, 2] f32[2]` and `1: [3] f32[1]`.
class LocalShard {
 public:
  /// Its position in mesh order.
  std::int64_t position() const { return position_; }
  int device_id() const { return device_id_; }
  /// The number of earlier positions that hold the same part.
  std::int64_t replica_id() const { return replica_id_; }
  /// The elements of the tensor that it holds. For an uneven size, the last shards can be empty.
  const Box& box() const { return box_; }
  /// `shard 1 on device 5: [0:4, 2:4] of f32[4,4]`; of a further replica `shard 1 (replica 1) on
  /// ...`.
  std::string to_string() const;

  /// Its elements, copied to the host. @error failed precondition if the tensor was donated or
  /// deleted.
  HostArray data(SourceLocation where = SourceLocation::current()) const;
  /// The same with the padding that it has on the device; all shards have the same padded shape.
  /// The contents of the padding are unspecified.
  HostArray padded_data(SourceLocation where = SourceLocation::current()) const;

 private:
  friend std::vector<LocalShard> local_shards(const Tensor& tensor, SourceLocation where);
  Tensor tensor_;
  std::size_t index_ = 0;  // among those of this process
  std::int64_t position_ = 0;
  int device_id_ = 0;
  std::int64_t replica_id_ = 0;
  Box box_;
};

/// The shards on the devices of this process, in mesh order. Computes the tensor if it is only
/// recorded; otherwise nothing communicates. A tensor on one device has one shard; a tensor on the
/// host, or only on devices of other processes, has no shards.
/// @error the errors of computing it.
std::vector<LocalShard> local_shards(const Tensor& tensor,
                                     SourceLocation where = SourceLocation::current());

/// The number of copies, on other devices or with other shardings, that are kept with a tensor.
/// Programs that take a tensor of the host leave one for each way in which they take it. Computes
/// nothing: a tensor that is only recorded has no copies.
std::size_t num_copies(const Tensor& tensor);

}  // namespace meshard
