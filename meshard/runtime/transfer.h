// Transfers a value to other devices.
#pragma once
#include <memory>
#include <utility>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_spec.h"

namespace meshard {

// transfer() with a sharding spec, as used by loaders.

/// Copies `x` to the devices of the spec's mesh, sharded by the spec. See runtime/transfer.h.
/// @error as transfer, and as ShardingSpec::sharding.
Tensor transfer(In x, const ShardingSpec& spec);

/// Copies `x` to the devices of `sharding`'s mesh, with that sharding. `x` is computed first if it
/// is only recorded, and stays on its devices. Use this to move values between sets of devices,
/// because one program runs on one set.
///
/// Shards are copied directly between devices if the plugin supports it. For other tiles or another
/// number of devices, each device receives the pieces of its tile, nothing else, and assembles it.
/// None of this waits for the value. Only if the plugin cannot copy, and between platforms, the
/// data goes through the host. runtime_counters() shows which path was used.
/// @error failed precondition inside a trace or a function that is being differentiated, which runs
/// on one set of devices; the sharding has more dimensions than x.
Tensor transfer(In x, const Sharding& sharding);
Tensor transfer(In x, const Mesh& mesh, const PartitionSpec& spec);

/// transfer(), under the name that JAX has for moving a value now. What is not moved now is a
/// constraint: mark_sharding() inside a trace, or sharding_constraint(), which JAX calls
/// with_sharding_constraint.
inline Tensor device_put(In x, const Sharding& sharding) { return transfer(x, sharding); }
inline Tensor device_put(In x, const Mesh& mesh, const PartitionSpec& spec) {
  return transfer(x, mesh, spec);
}

/// Move-only owner of a transfer that has begun.
class StartedTransfer {
 public:
  /// The remaining steps.
  class Rest {
   public:
    virtual ~Rest() = default;
    virtual Tensor finish() = 0;
  };
  /// A transfer that is complete, or that `rest` completes.
  StartedTransfer(Tensor value) : value_(std::move(value)) {}  // NOLINT: an implicit conversion
  explicit StartedTransfer(std::unique_ptr<Rest> rest) : rest_(std::move(rest)) {}

  /// The value on its devices. The first call launches what these have to do to assemble their
  /// tiles, if they receive them in pieces.
  /// @error the plugin's errors
  const Tensor& value();

 private:
  Tensor value_;
  std::unique_ptr<Rest> rest_;
};

/// Begins a transfer, up to the copies between the devices. A device runs its programs in the order
/// of their launches. Call StartedTransfer::value() only when the value is needed, so that a device
/// that assembles its tile does not wait for pieces while it could do other work.
/// @error as transfer()
StartedTransfer start_transfer(In x, const Sharding& sharding);

}  // namespace meshard
