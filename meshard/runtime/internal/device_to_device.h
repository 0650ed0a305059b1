// Device to device: moves a value to another sharding, on the same or other devices, without the
// host where the plugin allows.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/transfer.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The value with the sharding `target`, made from its nearest copy (copies.h) by the steps of
/// plan_route(). If the tiles are already on the devices, nothing moves; if larger tiles that
/// contain them are, they are cut there. Otherwise each tile is sent to its device, or the pieces
/// from which the device assembles it (transfer_by_pieces.h). Between devices of several processes,
/// tiles go through the processes' memory (Fabric::receive()). The data goes through the host only
/// if the plugin cannot copy between devices, and between platforms. Nothing is waited for, except
/// that values of kLeastCopiedBytes or more are resharded by the host on the same devices of this
/// process.
/// @pre `value` is stored on devices
/// @error not found if the client lacks a device; failed precondition if the value is gone.
Tensor move_to(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where);

/// The same, without the programs that assemble tiles from pieces; value() launches these.
StartedTransfer start_move(Runtime& runtime, const Value& value, const Sharding& target,
                           SourceLocation where);

}  // namespace meshard
