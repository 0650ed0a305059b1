// A tensor's data as shards on devices.
#pragma once
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/buffer_list.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/platforms.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The storage of a computed or placed value. It has one buffer per position of its mesh, in mesh
/// order, or one buffer on one device. Dimensions that the mesh does not divide evenly are padded
/// at the end in the buffers; only `padded_shard` exposes the padding.
class DeviceArray final : public Storage {
 public:
  /// @pre one buffer per position of the sharding's mesh, or one buffer without a sharding;
  /// `platforms` owns their client
  DeviceArray(const Platforms& platforms, TensorType type, std::optional<Sharding> sharding,
              pjrt::BufferList&& buffers)
      : Storage(Kind::kDevice),
        platforms_(platforms),
        type_(std::move(type)),
        sharding_(std::move(sharding)),
        buffers_(std::move(buffers)) {}
  DeviceArray(const Platforms& platforms, TensorType type, std::optional<Sharding> sharding,
              std::vector<pjrt::Buffer> buffers)
      : DeviceArray(platforms, std::move(type), std::move(sharding),
                    pjrt::BufferList::of(buffers)) {}

  static void* operator new(std::size_t size);
  static void operator delete(void* memory);

  const TensorType& type() const { return type_; }
  const Sharding* sharding() const override { return sharding_ ? &*sharding_ : nullptr; }
  const pjrt::BufferList& buffers() const { return buffers_; }
  std::size_t num_shards() const { return buffers_.size(); }

  /// The part of the value that shard `position` holds, clamped to the value; the last ones may be
  /// empty.
  Box box(std::size_t position) const;
  /// The shard without padding; padded_shard() returns it with padding.
  /// @error failed precondition if donated or deleted.
  HostArray shard(std::size_t position, SourceLocation where) const;
  HostArray padded_shard(std::size_t position, SourceLocation where) const;
  int device_id(std::size_t position) const { return buffers_[position].device().id(); }

  HostArray to_host(SourceLocation where) const override;
  /// Gathers into the caller's memory: `destination` must have type().bytes() bytes.
  void read_into(void* destination, SourceLocation where) const;
  void wait(SourceLocation where) const override;
  std::string placement() const override;
  std::string gone() const override;
  bool is_live() const { return buffers_.is_live(); }
  /// False after a restart of the runtime: the buffers belong to the old client and can only be
  /// read.
  bool is_current() const { return generation_ == platforms_.generation(); }

  /// Remembers where it was donated, for the error message of a later use.
  void set_donated_at(SourceLocation where) const { donated_at_ = where; }

 private:
  void check_live(SourceLocation where) const;
  const Platforms& platforms_;
  TensorType type_;
  std::optional<Sharding> sharding_;
  pjrt::BufferList buffers_;
  std::uint32_t generation_ = platforms_.generation();
  mutable SourceLocation donated_at_;
};

/// PJRT's element type for a dtype, and back.
pjrt::ElementType element_type_of(DType dtype);
/// @error unimplemented for element types without a meshard dtype (2-bit and 4-bit types).
Result<DType> dtype_of_element(pjrt::ElementType element);

}  // namespace meshard
