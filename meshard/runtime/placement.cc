#include "meshard/runtime/placement.h"

#include <unordered_map>

#include "meshard/array/slice.h"
#include "meshard/runtime/check_devices.h"
#include "meshard/runtime/copy_pool.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/event_recorder.h"

namespace meshard {
namespace {

// Below this, the plugin's own copy costs less than tracking a block that it uses in place.
constexpr std::int64_t kInPlaceBytes = 1 << 16;

// Sends a dense block as one buffer. The block stays alive as long as the plugin needs it.
pjrt::Buffer send(const pjrt::Client& client, const HostArray& keep, const void* data,
                  const TensorType& type, bool may_write, const pjrt::Device& device,
                  SourceLocation where) {
  pjrt::HostArrayView view{
      .data = data, .element = element_type_of(type.dtype), .dimensions = type.shape};
  bool in_place = type.bytes() >= kInPlaceBytes;
  auto semantics = !in_place   ? pjrt::HostSemantics::kImmutableOnlyDuringCall
                   : may_write ? pjrt::HostSemantics::kMutableZeroCopy
                               : pjrt::HostSemantics::kImmutableZeroCopy;
  internal::TransferSpan span;
  if (internal::records_events())
    span.begin("send", type.to_string(), device, static_cast<std::uint64_t>(type.bytes()));
  Result<pjrt::SentBuffer> sent = client.buffer_from_host(view, semantics, device);
  if (!sent.ok())
    throw sent.error().at(where).with_note(
        cat("while sending ", type, " to device ", device.id(), device.of_platform()));
  span.end_when_ready(sent->buffer);
  auto& counters = internal::counters();
  internal::count(counters.buffers_sent);
  internal::count(counters.bytes_sent, static_cast<std::uint64_t>(type.bytes()));
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

void begin_span(internal::HostSpan& span, const TensorType& type, SourceLocation where) {
  span.begin("place", type.to_string(), where);
  span.set_bytes(static_cast<std::uint64_t>(type.bytes()));
}

// True if the box is contiguous in a row-major array of `shape`.
bool is_contiguous(const Box& box, const Shape& shape) {
  std::size_t d = 0;
  while (d < box.size() && box[d].size() == 1) ++d;
  for (++d; d < box.size(); ++d)
    if (box[d].size() != shape[static_cast<std::int64_t>(d)]) return false;
  return true;
}

// The array, padded with zeros at the end of each dimension to the shape of `type`.
HostArray padded(const HostArray& array, const TensorType& type) {
  HostArray block = HostArray::zeros(type);
  if (array.size() > 0)
    plan_copy(array.bytes(), array.shape(), whole_box(array.shape()), block.mutable_bytes(),
              type.shape, whole_box(array.shape()), meshard::size_in_bytes(type.dtype))
        .run();
  return block;
}

class Placement {
 public:
  Placement(const pjrt::Client& client, const HostArray& array, const Sharding& sharding,
            SourceLocation where)
      : client_(client),
        array_(array),
        sharding_(sharding),
        where_(where),
        shard_type_(shard_type_of(array.type(), sharding)) {}

  StoragePtr run() {
    internal::HostSpan span;
    if (internal::records_events()) begin_span(span, array_.type(), where_);
    check_device_type(client_, sharding_.mesh(), where_);
    std::int64_t positions = sharding_.mesh().size();
    std::vector<const pjrt::Device*> devices;
    for (std::int64_t p = 0; p < positions; ++p)
      devices.push_back(&device_of(client_, sharding_.mesh().device_id(p), where_));
    // The first position of each tile determines its source; all positions of a tile share it.
    std::vector<std::size_t> tile_of(static_cast<std::size_t>(positions));
    std::unordered_map<std::int64_t, std::size_t> tiles;
    for (std::int64_t p = 0; p < positions; ++p) {
      auto [found, fresh] = tiles.try_emplace(tile_number(sharding_, p), sources_.size());
      if (fresh) add_source(p);
      tile_of[static_cast<std::size_t>(p)] = found->second;
    }
    CopyPool::get().run(copies_);
    DeviceArray::Buffers buffers;
    buffers.reserve(static_cast<std::size_t>(positions));
    bool alone = sharding_.num_replicas() == 1;
    for (std::int64_t p = 0; p < positions; ++p) {
      const Source& source = sources_[tile_of[static_cast<std::size_t>(p)]];
      if (source.aliases_user && shard_type_.bytes() >= kInPlaceBytes)
        internal::count(internal::counters().bytes_aliased,
                        static_cast<std::uint64_t>(shard_type_.bytes()));
      buffers.push_back(send(client_, source.block, source.data, shard_type_,
                             alone && !source.aliases_user, *devices[static_cast<std::size_t>(p)],
                             where_));
    }
    return make_storage<DeviceArray>(array_.type(), sharding_, std::move(buffers));
  }

 private:
  struct Source {
    HostArray block;
    const std::byte* data;
    bool aliases_user;
  };

  void add_source(std::int64_t position) {
    Box box = box_of(sharding_, array_.shape(), position);
    std::size_t element = meshard::size_in_bytes(array_.dtype());
    bool padded = box_shape(box) != shard_type_.shape;
    if (!padded && is_contiguous(box, array_.shape())) {
      Dimensions strides = array_.shape().strides();
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < box.size(); ++d) offset += box[d].start * strides[d];
      const std::byte* data = array_.bytes() + static_cast<std::size_t>(offset) * element;
      bool small = shard_type_.bytes() < kInPlaceBytes;
      if (small || reinterpret_cast<std::uintptr_t>(data) % kHostAlignment == 0) {
        sources_.push_back({array_, data, true});
        return;
      }
    }
    HostArray block =
        padded ? HostArray::zeros(shard_type_) : HostArray::uninitialized(shard_type_);
    if (box_shape(box).size() > 0)
      copies_.push_back(plan_copy(array_.bytes(), array_.shape(), box, block.mutable_bytes(),
                                  shard_type_.shape, whole_box(box_shape(box)), element));
    const std::byte* data = block.bytes();
    sources_.push_back({std::move(block), data, false});
  }

  const pjrt::Client& client_;
  const HostArray& array_;
  const Sharding& sharding_;
  SourceLocation where_;
  TensorType shard_type_;
  std::vector<Source> sources_;
  std::vector<StridedCopy> copies_;
};

}  // namespace

Box box_of(const Sharding& sharding, const Shape& shape, std::int64_t position) {
  return sharding.slice(shape, position);
}

TensorType shard_type_of(const TensorType& type, const Sharding& sharding) {
  Dimensions sizes;
  for (std::int64_t size : sharding.shard_shape(type.shape)) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

std::int64_t tile_number(const Sharding& sharding, std::int64_t position) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    number = number * sharding.num_tiles(d) + sharding.tile_index(d, position);
  return number;
}

const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where) {
  const pjrt::Device* device = client.find_device(id);
  if (device && device->addressable()) return *device;
  std::string known;
  for (const pjrt::Device* each : client.addressable_devices())
    append(known, cat(known.empty() ? "" : ",", each->id()));
  throw Error(
      ErrorCode::kNotFound,
      cat("[runtime] device ", id, " does not exist: platform ", client.name(), " has devices ",
          known, client.platform() == "cpu" ? " (MESHARD_CPU_DEVICES sets their number)" : ""),
      where);
}

StoragePtr place(const pjrt::Client& client, const HostArray& array, const Sharding& sharding,
                 SourceLocation where) {
  return Placement(client, array, sharding, where).run();
}

StoragePtr place_shards(const pjrt::Client& client, const TensorType& type,
                        const Sharding& sharding, std::span<const HostArray> shards,
                        SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) begin_span(span, type, where);
  check_device_type(client, sharding.mesh(), where);
  std::int64_t positions = sharding.mesh().size();
  if (static_cast<std::int64_t>(shards.size()) != positions)
    throw_invalid(where, "[sharded_tensor] ", shards.size(), " shards for the ", positions,
                  " devices of ", sharding.mesh());
  TensorType shard_type = shard_type_of(type, sharding);
  DeviceArray::Buffers buffers;
  buffers.reserve(shards.size());
  for (std::int64_t p = 0; p < positions; ++p) {
    const HostArray& shard = shards[static_cast<std::size_t>(p)];
    const pjrt::Device& device = device_of(client, sharding.mesh().device_id(p), where);
    Box box = box_of(sharding, type.shape, p);
    if (shard.dtype() != type.dtype ||
        (shard.shape() != shard_type.shape && shard.shape() != box_shape(box)))
      throw_invalid(where, "[sharded_tensor] shard ", p, " (device ", device.id(), ") is ",
                    shard.type(), "; this shard of ", type, " with ", sharding, " must be ",
                    TensorType{type.dtype, box_shape(box)}, ", or with padding ", shard_type);
    HostArray block = shard.shape() == shard_type.shape ? shard : padded(shard, shard_type);
    buffers.push_back(send(client, block, block.bytes(), shard_type, false, device, where));
  }
  return make_storage<DeviceArray>(type, sharding, std::move(buffers));
}

StoragePtr place(const pjrt::Client& client, const HostArray& array, const pjrt::Device& device,
                 SourceLocation where) {
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
  DeviceArray::Buffers buffers;
  buffers.push_back(send(client, block, block.bytes(), array.type(), false, device, where));
  return make_storage<DeviceArray>(array.type(), std::nullopt, std::move(buffers));
}

}  // namespace meshard
