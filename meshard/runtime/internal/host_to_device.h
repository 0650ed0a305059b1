// Host to device: each shard goes directly from the host bytes to its devices, once.
#pragma once
#include <span>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/storage.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/platforms.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Places `array` on the devices of the sharding's mesh. Starts the client of its platform. If the
/// mesh has devices of several processes, each process places its part, and all must pass the same
/// array (RuntimeOptions::check_host_data).
///
/// The device uses the host memory of a shard in place if the shard is contiguous and aligned
/// there, has at least 64 KiB, and the plugin supports it. Smaller shards are copied during the
/// call. Other shards are copied, on several threads, into aligned blocks, which the device then
/// uses in place; replicas share one block. Memory is allocated only for shards. Padding is zero.
/// @error not found if the platform lacks a device of the mesh; errors of Platforms::client; the
/// plugin's errors.
StoragePtr place(Platforms& platforms, const HostArray& array, const Sharding& sharding,
                 SourceLocation where);

/// Places all of `array` on one device of `client`, in place under the same conditions.
StoragePtr place(const Platforms& platforms, const pjrt::Client& client, const HostArray& array,
                 const pjrt::Device& device, SourceLocation where);

/// Makes a value of `type` from one host array per position of the sharding's mesh that is in this
/// process. The arrays are in mesh order; each is sent to its own device. An array is its
/// position's part of the value, either unpadded or padded to the shard shape. Arrays of replicas
/// may share one block of host memory, which is duplicated on the host only to add padding.
/// @error invalid argument for a wrong number of arrays, or an array with another dtype or shape;
/// the message has the position, the device and both shapes.
StoragePtr place_shards(Platforms& platforms, const TensorType& type, const Sharding& sharding,
                        std::span<const HostArray> shards, SourceLocation where);

/// The copy of the part `box` of `array` to the start of `block`, which may be larger. Elements
/// outside of the part are left as they are.
/// @pre the part is not empty, and `block` has the dtype of `array`
StridedCopy copy_into_padded(const HostArray& array, const Box& box, HostArray& block);

/// The array with zeros at the end of each dimension, up to the shape of `type`. The same array if
/// it has that shape already.
/// @pre no dimension of the array is larger
HostArray padded_on_host(const HostArray& array, const TensorType& type);

namespace internal {

/// A buffer on `device` of a dense block of host memory at `data`, which `keep` owns. A block of 64
/// KiB or more is used in place and kept as long as the plugin needs it; a smaller one is copied.
/// @param may_write true if the device may overwrite the block, for example after a donation
/// @error the plugin's errors
pjrt::Buffer give_to_device(const pjrt::Client& client, const HostArray& keep, const void* data,
                            const TensorType& type, bool may_write, const pjrt::Device& device,
                            SourceLocation where);

}  // namespace internal
}  // namespace meshard
