// A tensor's data as shards on devices.
#pragma once
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/graph/storage.h"
#include "meshard/hlo/shape.h"
#include "meshard/pjrt/buffer_list.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/platforms.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

enum class CopyTarget;  // internal/copy_pool.h

/// The storage of a computed or placed value. It has one buffer per position of its mesh, in mesh
/// order, or one buffer on one device. If the mesh has devices of several processes, it has the
/// buffers of this process only, and none if the whole value is elsewhere. Dimensions that the mesh
/// does not divide evenly are padded at the end in the buffers; only `padded_shard` exposes the
/// padding.
///
/// Functions with a parameter `i` refer to the i-th buffer.
class DeviceArray final : public Storage {
 public:
  /// @pre one buffer for each device of the sharding's mesh that is in this process, or one buffer
  /// without a sharding; `platforms` owns their client
  DeviceArray(const Platforms& platforms, ShardedType type, pjrt::BufferList&& buffers)
      : Storage(Kind::kDevice, &type_),
        platforms_(platforms),
        type_(std::move(type)),
        buffers_(std::move(buffers)) {}
  DeviceArray(const Platforms& platforms, TensorType type, std::optional<Sharding> sharding,
              pjrt::BufferList&& buffers)
      : DeviceArray(platforms, ShardedType(std::move(type), std::move(sharding)),
                    std::move(buffers)) {}
  DeviceArray(const Platforms& platforms, TensorType type, std::optional<Sharding> sharding,
              std::vector<pjrt::Buffer> buffers)
      : DeviceArray(platforms, std::move(type), std::move(sharding),
                    buffers.empty() ? pjrt::BufferList() : pjrt::BufferList::of(buffers)) {}

  ~DeviceArray() override;

  static void* operator new(std::size_t size);
  static void operator delete(void* memory);

  const TensorType& type() const { return type_.type(); }
  const Sharding* sharding() const override { return type_.sharding(); }
  const pjrt::BufferList& buffers() const { return buffers_; }
  /// The number of shards in this process.
  std::size_t num_shards() const { return buffers_.size(); }
  /// The position of shard `i` in the mesh; 0 without a sharding.
  std::int64_t position(std::size_t i) const;
  /// The shard at a position of the mesh; none if it is in another process.
  std::optional<std::size_t> shard_at(std::int64_t position) const;
  /// For each part of the value that is in this process, a shard that holds it.
  std::vector<std::size_t> distinct_shards() const;
  /// Whether this process has all parts of the value.
  bool has_all_parts() const;

  /// The part of the value that shard `i` holds, clamped to the value; the last ones may be empty.
  Box box(std::size_t i) const;
  /// The shard without padding; padded_shard() returns it with padding.
  /// @error failed precondition if donated or deleted.
  HostArray shard(std::size_t i, SourceLocation where) const;
  HostArray padded_shard(std::size_t i, SourceLocation where) const;
  int device_id(std::size_t i) const { return buffers_[i].device().id(); }

  /// Assembles the whole value from the parts of this process (internal/read_whole.h brings those
  /// of others).
  /// @error unimplemented unless has_all_parts()
  HostArray to_host(SourceLocation where) const override;
  std::string local_text(SourceLocation where) const override;
  /// Gathers into the caller's memory: `destination` must have type().bytes() bytes.
  /// @error as to_host
  void read_into(void* destination, SourceLocation where) const;
  void wait(SourceLocation where) const override;
  std::string placement() const override;
  std::string gone() const override;
  bool is_live() const { return buffers_ ? buffers_.is_live() : !donated_at_.known(); }
  /// False after a restart of the runtime: the buffers belong to the old client and can only be
  /// read.
  bool is_current() const { return generation_ == platforms_.generation(); }

  /// Whether a failed launch consumed it, so that it was not donated successfully.
  bool is_lost() const { return buffers_.is_donated() && !donated_at_.known(); }

  /// Remembers where it was donated, for the error message of a later use.
  void set_donated_at(SourceLocation where) const { donated_at_ = where; }

 private:
  // Whether buffer i belongs to position i.
  bool has_each_position() const {
    const Sharding* over = type_.sharding();
    return !over || static_cast<std::int64_t>(buffers_.size()) == over->mesh().size();
  }
  void check_live(SourceLocation where) const;
  void gather_into(void* destination, CopyTarget target, SourceLocation where) const;
  const Platforms& platforms_;
  ShardedType type_;
  pjrt::BufferList buffers_;
  std::uint32_t generation_ = platforms_.generation();
  mutable SourceLocation donated_at_;
};

}  // namespace meshard
