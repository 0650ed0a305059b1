// The data of one buffer on another device.
#pragma once
#include "meshard/pjrt/client.h"

namespace meshard {

/// Returns a buffer on `device` with the data of `source`. It is a copy between devices or, if
/// `source` is already on `device`, a view, whose data remains unchanged even if `source` is
/// donated or deleted.
/// @error unimplemented if the plugin does not support it, or if `source` belongs to another
/// client.
Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::BufferView& source,
                               const pjrt::Device& device);

}  // namespace meshard
