// A value on devices to another placement, on these or on other devices, without the host where the
// plugin allows.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/pjrt/client.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A buffer on `device` with the data of `source`: a copy from device to device, or, if it lies
/// there already, a view, which keeps the data as it is whatever becomes of `source`.
/// @error unimplemented where the plugin cannot, and where `source` is another client's.
Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::Buffer& source,
                               const pjrt::Device& device);

/// True if each shard of `target` is as it stands a shard of a value that lies as `source` says
/// (nullptr: whole, on one device).
bool has_same_tiles(const Sharding* source, const Sharding& target);

/// The value laid out as `target` says, made of its nearest copy (copies.h). Where the tiles are on
/// the devices already nothing moves; tiles that contain them are cut there. Else its own devices
/// make the tiles that are wanted, by a reshard among themselves or by cutting it if it is on one,
/// and each goes to its device. Through the host only for another number of devices, where the
/// plugin cannot copy between devices, and from one platform to another.
/// @pre `value` is stored on devices
/// @error not found if the client lacks a device; failed precondition if the value is gone.
Tensor move_to(const Value& value, const Sharding& target, SourceLocation where);

}  // namespace meshard
