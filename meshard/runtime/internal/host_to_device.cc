#include "meshard/runtime/internal/host_to_device.h"

#include <optional>
#include <unordered_map>

#include "meshard/mesh/axes_index.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/copy_pool.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/tiles.h"
#include "meshard/sharding/axis_moves.h"

namespace meshard {
namespace {

// Below this, the plugin's own copy costs less than tracking a block that it uses in place.
constexpr std::int64_t kInPlaceBytes = 1 << 16;

// Sends a dense block, and counts it as sent from the host.
pjrt::Buffer send(const pjrt::Client& client, const HostArray& keep, const void* data,
                  const TensorType& type, bool may_write, const pjrt::Device& device,
                  SourceLocation where) {
  internal::TransferSpan span;
  if (internal::records_events())
    span.begin("send", type.to_string(), device, static_cast<std::uint64_t>(type.bytes()));
  pjrt::Buffer buffer =
      internal::give_to_device(client, keep, data, type, may_write, device, where);
  span.end_when_ready(buffer);
  auto& counters = internal::counters();
  internal::count(counters.buffers_sent);
  internal::count(counters.bytes_sent, static_cast<std::uint64_t>(type.bytes()));
  return buffer;
}

void begin_span(internal::HostSpan& span, const TensorType& type, SourceLocation where) {
  span.begin("place", type.to_string(), where);
  span.set_bytes(static_cast<std::uint64_t>(type.bytes()));
}

// Sends one array. Replicas of a shard share one block of host memory.
class ShardSender {
 public:
  ShardSender(Platforms& platforms, const HostArray& array, const Sharding& sharding,
              SourceLocation where)
      : platforms_(platforms),
        client_(platforms.client(sharding.mesh(), where)),
        array_(array),
        sharding_(sharding),
        where_(where),
        shard_type_(shard_type_of(array.type(), sharding)) {}

  StoragePtr run() {
    internal::HostSpan span;
    if (internal::records_events()) begin_span(span, array_.type(), where_);
    std::vector<LocalPosition> positions = local_positions(client_, sharding_.mesh(), where_);
    platforms_.fabric(client_).check_equal_data(array_, sharding_.mesh(), where_);
    // The first position of each tile determines its source; all positions of a tile share it.
    // Along summed axes, the value is the sum of the shards: those after the first are zeros.
    const AxesIndex summand(sharding_.mesh(), summed_axes(sharding_));
    std::vector<std::size_t> tile_of;
    std::optional<std::size_t> zeros;
    std::unordered_map<std::int64_t, std::size_t> tiles;
    for (const LocalPosition& at : positions) {
      if (summand(at.position) != 0) {
        if (!zeros) zeros = add_zeros();
        tile_of.push_back(*zeros);
        continue;
      }
      auto [found, fresh] = tiles.try_emplace(tile_number(sharding_, at.position), sources_.size());
      if (fresh) add_source(at.position);
      tile_of.push_back(found->second);
    }
    CopyPool::get().run(copies_);
    std::vector<pjrt::Buffer> buffers;
    buffers.reserve(positions.size());
    bool alone = sharding_.num_replicas() == 1;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const Source& source = sources_[tile_of[i]];
      if (source.aliases_user && shard_type_.bytes() >= kInPlaceBytes)
        internal::count(internal::counters().bytes_aliased,
                        static_cast<std::uint64_t>(shard_type_.bytes()));
      buffers.push_back(send(client_, source.block, source.data, shard_type_,
                             alone && !source.aliases_user, *positions[i].device, where_));
    }
    return make_storage<DeviceArray>(platforms_, array_.type(), sharding_, std::move(buffers));
  }

 private:
  struct Source {
    HostArray block;
    const std::byte* data;
    bool aliases_user;
  };

  std::size_t add_zeros() {
    HostArray block = HostArray::zeros(shard_type_);
    const std::byte* data = block.bytes();
    sources_.push_back({std::move(block), data, false});
    return sources_.size() - 1;
  }

  void add_source(std::int64_t position) {
    Box box = box_of(sharding_, array_.shape(), position);
    std::size_t element = meshard::size_in_bytes(array_.dtype());
    bool padded = box_shape(box) != shard_type_.shape;
    std::optional<std::int64_t> at = contiguous_at(box, array_.shape());
    if (!padded && at) {
      const std::byte* data = array_.bytes() + static_cast<std::size_t>(*at) * element;
      bool small = shard_type_.bytes() < kInPlaceBytes;
      if (small || reinterpret_cast<std::uintptr_t>(data) % kHostAlignment == 0) {
        sources_.push_back({array_, data, true});
        return;
      }
    }
    HostArray block =
        padded ? HostArray::zeros(shard_type_) : HostArray::uninitialized(shard_type_);
    if (box_shape(box).size() > 0) copies_.push_back(copy_into_padded(array_, box, block));
    const std::byte* data = block.bytes();
    sources_.push_back({std::move(block), data, false});
  }

  const Platforms& platforms_;
  const pjrt::Client& client_;
  const HostArray& array_;
  const Sharding& sharding_;
  SourceLocation where_;
  TensorType shard_type_;
  std::vector<Source> sources_;
  std::vector<StridedCopy> copies_;
};

}  // namespace

StridedCopy copy_into_padded(const HostArray& array, const Box& box, HostArray& block) {
  return plan_copy(array.bytes(), array.shape(), box, block.mutable_bytes(), block.shape(),
                   whole_box(box_shape(box)), meshard::size_in_bytes(array.dtype()));
}

HostArray padded_on_host(const HostArray& array, const TensorType& type) {
  if (array.shape() == type.shape) return array;
  HostArray block = HostArray::zeros(type);
  if (array.size() > 0) copy_into_padded(array, whole_box(array.shape()), block).run();
  return block;
}

pjrt::Buffer internal::give_to_device(const pjrt::Client& client, const HostArray& keep,
                                      const void* data, const TensorType& type, bool may_write,
                                      const pjrt::Device& device, SourceLocation where) {
  pjrt::HostArrayView view{
      .data = data, .element = element_type_of(type.dtype), .dimensions = type.shape};
  bool in_place = type.bytes() >= kInPlaceBytes;
  auto semantics = !in_place   ? pjrt::HostSemantics::kImmutableOnlyDuringCall
                   : may_write ? pjrt::HostSemantics::kMutableZeroCopy
                               : pjrt::HostSemantics::kImmutableZeroCopy;
  Result<pjrt::SentBuffer> sent = client.buffer_from_host(view, semantics, device);
  if (!sent.ok())
    throw sent.error().at(where).with_note(
        cat("while sending ", type, " to device ", device.id(), device.of_platform()));
  if (in_place) {
    // The event completes when the device no longer uses the block; until then the callback owns
    // it.
    Result<void> watched = sent->host_released.on_ready([keep](const Result<void>&) {});
    if (!watched.ok()) {
      sent->buffer = {};
      (void)sent->host_released.await();  // the device may still be reading
      throw watched.error().at(where).with_note(
          cat("while sending ", type, " to device ", device.id(), device.of_platform()));
    }
  }
  return std::move(sent->buffer);
}

StoragePtr place(Platforms& platforms, const HostArray& array, const Sharding& sharding,
                 SourceLocation where) {
  return ShardSender(platforms, array, sharding, where).run();
}

StoragePtr place_shards(Platforms& platforms, const TensorType& type, const Sharding& sharding,
                        std::span<const HostArray> shards, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) begin_span(span, type, where);
  const pjrt::Client& client = platforms.client(sharding.mesh(), where);
  std::vector<LocalPosition> positions = local_positions(client, sharding.mesh(), where);
  if (shards.size() != positions.size())
    throw_invalid(where, "[sharded_tensor] ", shards.size(), " shards for the ", positions.size(),
                  " devices of ", sharding.mesh(),
                  std::ssize(positions) == sharding.mesh().size() ? "" : " in this process");
  TensorType shard_type = shard_type_of(type, sharding);
  std::vector<pjrt::Buffer> buffers;
  buffers.reserve(shards.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const HostArray& shard = shards[i];
    const std::int64_t p = positions[i].position;
    const pjrt::Device& device = *positions[i].device;
    Box box = box_of(sharding, type.shape, p);
    if (shard.dtype() != type.dtype ||
        (shard.shape() != shard_type.shape && shard.shape() != box_shape(box)))
      throw_invalid(where, "[sharded_tensor] shard ", p, " (device ", device.id(), ") is ",
                    shard.type(), "; this shard of ", type, " with ", sharding, " must be ",
                    TensorType{type.dtype, box_shape(box)}, ", or with padding ", shard_type);
    HostArray block = padded_on_host(shard, shard_type);
    buffers.push_back(send(client, block, block.bytes(), shard_type, false, device, where));
  }
  return make_storage<DeviceArray>(platforms, type, sharding, std::move(buffers));
}

StoragePtr place(const Platforms& platforms, const pjrt::Client& client, const HostArray& array,
                 const pjrt::Device& device, SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) begin_span(span, array.type(), where);
  bool large = array.size_in_bytes() >= kInPlaceBytes;
  HostArray block = array;
  if (large && array.alignment() < kHostAlignment) {
    block = HostArray::uninitialized(array.type());
    Box box = whole_box(array.shape());
    StridedCopy copy = plan_gather(array.bytes(), array.shape(), box,
                                   meshard::size_in_bytes(array.dtype()), block.mutable_bytes());
    CopyPool::get().run(std::span(&copy, 1));
  } else if (large) {
    internal::count(internal::counters().bytes_aliased,
                    static_cast<std::uint64_t>(array.size_in_bytes()));
  }
  std::vector<pjrt::Buffer> buffers;
  buffers.push_back(send(client, block, block.bytes(), array.type(), false, device, where));
  return make_storage<DeviceArray>(platforms, array.type(), std::nullopt, std::move(buffers));
}

}  // namespace meshard
