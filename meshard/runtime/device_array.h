// A tensor's bytes as shards on devices.
#pragma once
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/inline_vector.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/runtime.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The storage of a computed or placed value: one buffer per position of its mesh (mesh order), or
/// one buffer on one device. Dimensions that the mesh does not divide are padded at the end in the
/// buffers; nobody sees the padding but `padded_shard`.
class DeviceArray final : public Storage {
 public:
  using Buffers = InlineVector<pjrt::Buffer, 1>;

  /// @pre one buffer per position of the sharding's mesh, or one without a sharding
  DeviceArray(TensorType type, std::optional<Sharding> sharding, Buffers buffers)
      : Storage(Kind::kDevice),
        type_(std::move(type)),
        sharding_(std::move(sharding)),
        buffers_(std::move(buffers)) {}

  const TensorType& type() const { return type_; }
  const Sharding* sharding() const override { return sharding_ ? &*sharding_ : nullptr; }
  std::span<const pjrt::Buffer> buffers() const { return {buffers_.data(), buffers_.size()}; }
  std::size_t num_shards() const { return buffers_.size(); }

  /// Which part of the value shard `position` holds, clamped to the value: late ones may be empty.
  Box box(std::size_t position) const;
  /// The shard without padding, and as it lies on the device.
  /// @error failed precondition if donated or deleted.
  HostArray shard(std::size_t position, SourceLocation where) const;
  HostArray padded_shard(std::size_t position, SourceLocation where) const;
  int device_id(std::size_t position) const { return buffers_[position].device().id(); }

  HostArray to_host(SourceLocation where) const override;
  /// Gathers into memory that the caller has: `destination` holds type().bytes() bytes.
  void read_into(void* destination, SourceLocation where) const;
  void wait(SourceLocation where) const override;
  std::string placement() const override;
  std::string gone() const override;
  bool is_live() const;
  /// False after the runtime was restarted: the buffers are another client's, and only to be read.
  bool is_current() const {
    return generation_ == internal::runtime_generation.load(std::memory_order_relaxed);
  }

  /// Remembers who consumed it, for the message of whoever uses it afterward.
  void set_donated_at(SourceLocation where) const { donated_at_ = where; }

 private:
  void check_live(SourceLocation where) const;
  TensorType type_;
  std::optional<Sharding> sharding_;
  Buffers buffers_;
  std::uint32_t generation_ = internal::runtime_generation.load(std::memory_order_relaxed);
  mutable SourceLocation donated_at_;
};

/// PJRT's number for a dtype, and back.
pjrt::ElementType element_type_of(DType dtype);
/// @error unimplemented for element types that meshard has no dtype for (complex, 4-bit).
Result<DType> dtype_of_element(pjrt::ElementType element);

}  // namespace meshard
