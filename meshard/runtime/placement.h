// Sends host data to devices: each shard goes directly from the host bytes to its device, once.
#pragma once
#include <span>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/client.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Places `array` on the devices of the sharding's mesh.
///
/// The device uses the host memory of a shard in place if the shard is contiguous and aligned
/// there, has at least 64 KiB, and the plugin supports it. Smaller shards are copied during the
/// call. Other shards are copied, on several threads, into aligned blocks, which the device then
/// uses in place; replicas share one block. Memory is allocated only for shards. Padding is zero.
/// @error not found if the client lacks a device of the mesh; the plugin's errors.
StoragePtr place(const pjrt::Client& client, const HostArray& array, const Sharding& sharding,
                 SourceLocation where);

/// Places all of `array` on one device, in place under the same conditions.
StoragePtr place(const pjrt::Client& client, const HostArray& array, const pjrt::Device& device,
                 SourceLocation where);

/// Makes a value of `type` from one host array per position of the sharding's mesh. The arrays are
/// in mesh order; each is sent to its own device. An array is its position's part of the value,
/// either unpadded or padded to the shard shape. Arrays of replicas may share one block of host
/// memory, which is duplicated on the host only to add padding.
/// @error invalid argument for a wrong number of arrays, or an array with another dtype or shape;
/// the message has the position, the device and both shapes.
StoragePtr place_shards(const pjrt::Client& client, const TensorType& type,
                        const Sharding& sharding, std::span<const HostArray> shards,
                        SourceLocation where);

/// The part of a value of `shape` that a position holds, clamped to the value; the last ones may be
/// empty.
Box box_of(const Sharding& sharding, const Shape& shape, std::int64_t position);
/// The type of one shard of a value, including padding.
TensorType shard_type_of(const TensorType& type, const Sharding& sharding);

/// The number of a position's tile, in row-major order over the dimensions' num_tiles.
std::int64_t tile_number(const Sharding& sharding, std::int64_t position);

/// The addressable device with this id.
/// @error not found, with the devices that exist.
const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where);

}  // namespace meshard
