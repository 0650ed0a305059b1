// Host data to devices: each shard goes straight from the host bytes to its device, once.
#pragma once
#include <span>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/client.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Puts `array` on the devices of the sharding's mesh.
///
/// A shard that lies in one piece in aligned host memory is used in place where the plugin can; all
/// others are copied, on several threads, into aligned blocks of their own that the device then
/// uses in place. Replicas share one block. Memory grows by the shards only. Padding is zero.
/// @error not found if the client lacks a device of the mesh; what the plugin answers.
StoragePtr place(const pjrt::Client& client, const HostArray& array, const Sharding& sharding,
                 SourceLocation where);

/// Puts the whole of `array` on one device.
StoragePtr place(const pjrt::Client& client, const HostArray& array, const pjrt::Device& device,
                 SourceLocation where);

/// Makes a value of `type` of one host array for each position of the sharding's mesh, in mesh
/// order, each sent to its own device. Each array is its position's part of the value, as it is or
/// padded to the shard shape. Arrays that share a block (replicas) share it on the host too.
/// @error invalid argument for another number of arrays, or one of another dtype or shape, with the
/// position, the device and both shapes.
StoragePtr place_shards(const pjrt::Client& client, const TensorType& type,
                        const Sharding& sharding, std::span<const HostArray> shards,
                        SourceLocation where);

/// The part of a value of `shape` that a position holds, clamped to it: a late one may be empty.
Box box_of(const Sharding& sharding, const Shape& shape, std::int64_t position);
/// The type of one shard of a value, padding included.
TensorType shard_type_of(const TensorType& type, const Sharding& sharding);

/// Which tile a position holds, counted row-major over num_tiles of the dimensions.
std::int64_t tile_number(const Sharding& sharding, std::int64_t position);

/// The addressable device of this id.
/// @error not found, naming the devices that exist.
const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where);

}  // namespace meshard
