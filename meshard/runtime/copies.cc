#include "meshard/runtime/copies.h"

#include <mutex>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/mesh/device_type.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/move_shards.h"

namespace meshard {
namespace {

// Guards the lists of copies of all values.
std::mutex copies_mutex;

const DeviceArray& array_of(const Storage::Placement& copy) {
  return static_cast<const DeviceArray&>(*copy.storage);
}

// False for a copy whose transfer failed, because each use of it would fail again. A copy that is
// still in transit is usable.
bool is_usable(Storage::Placement& copy) {
  const DeviceArray& array = array_of(copy);
  if (!array.is_live() || !array.is_current()) return false;
  if (copy.arrived) return true;
  bool arrived = true;
  for (const pjrt::Buffer& buffer : array.buffers()) {
    Result<pjrt::Event> event = buffer.ready_event();
    Result<bool> ready = event.ok() ? event->is_ready() : event.error();
    if (!ready.ok() || (*ready && !event->await().ok())) return false;
    arrived &= *ready;
  }
  copy.arrived = arrived;
  return true;
}

// The distance of a value from the sharding `target`; smaller is nearer.
int distance(const Storage& storage, const Sharding& target) {
  const Sharding* sharding =
      storage.kind() == Storage::Kind::kDevice ? storage.sharding() : nullptr;
  // A value on one device without a sharding is on the default platform.
  if (!sharding) return internal::same_device_type("", target.mesh().device_type()) ? 3 : 4;
  if (has_tiles_in_place(*sharding, target)) return 0;
  if (part_in_place(*sharding, target)) return 1;
  if (sharding->mesh().same_devices(target.mesh())) return 2;
  return same_platform(sharding->mesh(), target.mesh()) ? 3 : 4;
}

}  // namespace

bool is_on_this_client(const Storage& storage) {
  return storage.kind() != Storage::Kind::kDevice ||
         static_cast<const DeviceArray&>(storage).is_current();
}

StoragePtr find_copy(const Storage& value, const std::optional<Sharding>& sharding,
                     const pjrt::Device* device) {
  std::lock_guard lock(copies_mutex);
  for (auto* each = value.placements().get(); each; each = each->next.get()) {
    const DeviceArray& array = array_of(*each);
    if (same_sharding(array.sharding(), sharding) &&
        (sharding || &array.buffers()[0].device() == device) && is_usable(*each))
      return each->storage;
  }
  return {};
}

void remember_copy(const Storage& value, StoragePtr copy) {
  std::lock_guard lock(copies_mutex);
  for (auto* link = &value.placements(); *link;) {
    if (is_usable(**link))
      link = &(*link)->next;
    else
      *link = std::shared_ptr<Storage::Placement>((*link)->next);
  }
  auto placement = std::make_shared<Storage::Placement>();
  placement->storage = std::move(copy);
  placement->next = std::move(value.placements());
  value.placements() = std::move(placement);
}

StoragePtr nearest_copy(const Value& value, const Sharding& target) {
  StoragePtr nearest(value.storage());
  int best = distance(*nearest, target);
  std::lock_guard lock(copies_mutex);
  for (auto* each = nearest->placements().get(); each && best > 0; each = each->next.get()) {
    int here = distance(*each->storage, target);
    if (here >= best || !is_usable(*each)) continue;
    best = here;
    nearest = each->storage;
  }
  return nearest;
}

Tensor copy_with(const Value& value, const Sharding& sharding, SourceLocation where) {
  StoragePtr storage(value.storage());
  const Sharding* present = storage->sharding();
  if (present && *present == sharding && is_on_this_client(*storage))
    return make_array(value.type(), storage, where);
  if (StoragePtr known = find_copy(*storage, sharding, nullptr))
    return make_array(value.type(), known, where);
  Tensor copy = evaluator(where).place(value, sharding, where);
  remember_copy(*storage, StoragePtr(copy.value().storage()));
  return copy;
}

bool has_tiles_in_place(const Sharding& source, const Sharding& target) {
  if (!same_platform(source.mesh(), target.mesh()) || !has_same_tiles(&source, target))
    return false;
  std::size_t rank = std::min(source.rank(), target.rank());
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    std::optional<std::int64_t> at = source.mesh().position(target.mesh().device_id(p));
    if (!at) return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (source.tile_index(d, *at) != target.tile_index(d, p)) return false;
  }
  return true;
}

std::optional<Sharding> part_in_place(const Sharding& source, const Sharding& target) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < target.rank(); ++d) {
    std::int64_t tiles = d < source.rank() ? source.num_tiles(d) : 1;
    AxisList axes;
    for (const AxisRef& axis : target.axes(d)) {
      if (tiles == 1) break;
      std::int64_t size = target.mesh().axis_size(axis);
      if (tiles % size == 0) {
        axes.push_back(axis);
        tiles /= size;
      } else if (size % tiles == 0) {
        axes.push_back(AxisRef(axis.name, axis.is_whole() ? 1 : axis.pre_size, tiles));
        tiles = 1;
      } else {
        return std::nullopt;
      }
    }
    if (tiles != 1) return std::nullopt;
    dimensions.emplace_back(std::move(axes));
  }
  Sharding part(target.mesh(), PartitionSpec(std::move(dimensions)), target.rank());
  return has_tiles_in_place(source, part) ? std::optional(std::move(part)) : std::nullopt;
}

bool is_whole_on(const Sharding& source, const Mesh& mesh) {
  if (!source.is_fully_replicated() || !source.unreduced_axes().empty()) return false;
  if (!same_platform(source.mesh(), mesh)) return false;
  for (std::int64_t id : mesh.device_ids())
    if (!source.mesh().position(id)) return false;
  return true;
}

}  // namespace meshard
