// Shards from the devices of one mesh to those of another, without the host.
#pragma once
#include <span>

#include "meshard/graph/storage.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/device_array.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A buffer on `device` with the data of `source`: a copy from device to device, or, if it lies
/// there already, a view, which keeps the data as it is whatever becomes of `source`.
/// @error unimplemented where the plugin cannot.
Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::Buffer& source,
                               const pjrt::Device& device);

/// True if each shard of `target` is as it stands a shard of a value that lies as `source` says
/// (nullptr: whole, on one device).
bool has_same_tiles(const Sharding* source, const Sharding& target);

/// The value of `source` on the devices of `target`'s mesh, shard by shard from device to device.
/// @pre `source` is a DeviceArray, has_same_tiles of its sharding and `target`
/// @error unimplemented where the plugin cannot; not found if the client lacks a device; failed
/// precondition if the value is gone.
Result<StoragePtr> move_shards(const pjrt::Client& client, const StoragePtr& source,
                               const Sharding& target, SourceLocation where);

}  // namespace meshard
