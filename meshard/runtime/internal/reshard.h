// Resharding by a program on the devices of the value.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/platforms.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The value with the sharding `target`, which is over the same devices.
/// @pre `value` is stored with a sharding, on devices of a current client
/// @error errors of the compiler and the plugin
Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where);

// Resharding by copies of the host, for devices whose memory is host memory.

/// The size from which reshard_by_copy() is faster than a program, which takes a launch, and twice
/// the memory. Smaller values do not wait for their source.
inline constexpr std::int64_t kLeastCopiedBytes = 1 << 20;

/// Whether a value with this sharding has it exactly: no open dimensions, unreduced axes or
/// explicitly replicated axes. A program that returns a value with a plain sharding gives it the
/// same one.
bool is_plain(const Sharding& sharding);

/// The value with the sharding `target`, which may be over other devices of the same client. Waits
/// for the source, and copies the pieces of its shards on several threads into new blocks, which
/// the devices then use in place. Replicas share one block. Memory is allocated only for shards,
/// and nothing is compiled.
/// @pre all devices of the source are of this process
/// @error unimplemented if the host cannot read the devices' memory, the source has unreduced
/// axes, `target` is not plain, or there are more than 65,536 pieces; the error of the source, if
/// it failed
/// @error not found if the client lacks a device of the mesh; the plugin's errors (both thrown)
Result<StoragePtr> reshard_by_copy(Platforms& platforms, const DeviceArray& source,
                                   const Sharding& target, SourceLocation where);

}  // namespace meshard
