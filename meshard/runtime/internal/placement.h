// Where values go: chooses between host to device, device to device, and a copy that exists.
#pragma once
#include <cstddef>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/pjrt/device.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/transfer.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

// The copies of one value on several devices, so that each set of devices receives it once. Each
// value owns its list of copies.

/// False if the storage is on a client that was replaced (restart_runtime()). True for a current
/// client of any platform, and for host storage.
bool is_on_this_client(const Storage& storage);

/// A live copy of the value with this sharding or, if there is no sharding, on this device. Null if
/// no such copy exists.
StoragePtr find_copy(const Storage& value, const std::optional<Sharding>& sharding,
                     const pjrt::Device* device);

/// Remembers a copy of the value for the lifetime of the value. Forgets copies that are gone.
void remember_copy(const Storage& value, StoragePtr copy);

/// The number of copies that are remembered.
std::size_t num_copies(const Storage& value);

/// The storage or copy of `value` from which a value with `target`'s sharding needs the least
/// traffic. In order of preference: a copy that has the tiles in place; a copy whose tiles in place
/// contain them; a copy on the same devices; a copy on the same platform; the value itself.
/// @pre `value` is stored
StoragePtr nearest_copy(const Value& value, const Sharding& target);

/// `value` with this sharding: itself, or a new value. Host data is sent (host_to_device.h); data
/// on devices is moved (device_to_device.h), from its nearest copy.
/// @pre `value` is stored
/// @error the errors of sending and moving
Tensor place_value(Runtime& runtime, const Value& value, const Sharding& sharding,
                   SourceLocation where);

/// The same, in two parts (start_transfer()).
StartedTransfer start_placing(Runtime& runtime, const Value& value, const Sharding& sharding,
                              SourceLocation where);

/// `value` with this sharding: itself, an existing copy, or a new copy, which is remembered.
/// @pre `value` is stored
/// @error the errors of place_value
Tensor copy_with(Runtime& runtime, const Value& value, const Sharding& sharding,
                 SourceLocation where);

}  // namespace meshard
