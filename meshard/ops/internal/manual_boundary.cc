// Tested in meshard/ops/full_to_shard_test.cc.
#include "meshard/ops/internal/manual_boundary.h"

namespace meshard::internal {

void check_manual_sharding(const OpCall& call, const std::optional<Sharding>& sharding,
                           const AxisList& manual, const TensorType& full) {
  if (!sharding) call.fail("no sharding was given for ", full);
  if (sharding->rank() != static_cast<std::size_t>(full.rank()))
    call.fail("the sharding describes ", sharding->rank(), " dimensions, ", full, " has ",
              full.rank(), ": ", *sharding);
  AxisSet allowed(sharding->mesh(), manual, call.where);
  for (std::size_t d = 0; d < sharding->rank(); ++d) {
    if (sharding->is_open(d))
      call.fail("dimension ", d,
                " is open, but the compiler chooses no sharding over manual axes: ", *sharding);
    if (!allowed.contains(AxisSet(sharding->mesh(), sharding->axes(d), call.where)))
      call.fail("dimension ", d, " is split by ", meshard::to_string(sharding->axes(d)),
                ", but the manual axes are ", meshard::to_string(manual), " of ", sharding->mesh());
  }
  if (!sharding->unreduced_axes().empty() || !sharding->replicated_axes().empty())
    call.fail("replicated or unreduced axes are not allowed here: ", *sharding);
}

AxisSet splitting_axes(const Sharding& sharding) {
  AxisSet axes;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    axes = axes | AxisSet(sharding.mesh(), sharding.axes(d));
  return axes;
}

}  // namespace meshard::internal
