// Device to device: moves a value to another sharding, on the same or other devices, without the
// host where the plugin allows.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Returns a buffer on `device` with the data of `source`. It is a copy between devices or, if
/// `source` is already on `device`, a view, whose data remains unchanged even if `source` is
/// donated or deleted.
/// @error unimplemented if the plugin does not support it, or if `source` belongs to another
/// client.
Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::BufferView& source,
                               const pjrt::Device& device);

/// The value with the sharding `target`, made from its nearest copy (copies.h). If the tiles are
/// already on the devices, nothing moves; if larger tiles that contain them are, they are cut
/// there. Otherwise the value's own devices make the required tiles, by resharding or, on one
/// device, by cutting, and each tile is sent to its device. Between devices of several processes,
/// tiles go through the processes' memory (exchange.h). The data goes through the host only for
/// another number of devices, if the plugin cannot copy between devices, and between platforms.
/// @pre `value` is stored on devices
/// @error not found if the client lacks a device; failed precondition if the value is gone.
Tensor move_to(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where);

}  // namespace meshard
