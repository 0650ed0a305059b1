// Tested in meshard/runtime/internal/copies_test.cc.
#include "meshard/runtime/internal/placement.h"

#include <memory>
#include <mutex>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/mesh/device_type.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_to_device.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/read_whole.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

// The copies of one value. Destroyed with it.
class Copies final : public Storage::Attachment {
 public:
  /// Those of `value`; null if it has none yet.
  static Copies* find(const Storage& value) { return static_cast<Copies*>(value.attachment()); }
  static Copies& of(const Storage& value) {
    Copies* known = find(value);
    return known ? *known : static_cast<Copies&>(value.attach(std::make_unique<Copies>()));
  }

  /// Forgets copies that are gone.
  void add(StoragePtr copy) {
    std::lock_guard lock(mutex_);
    std::erase_if(copies_, [](Copy& each) { return !is_usable(each); });
    copies_.push_back({std::move(copy)});
  }
  /// The usable copy of the smallest cost below `limit`; the newest of several. Null if there is
  /// none.
  template <class Cost>
  StoragePtr cheapest(Cost cost, int limit) {
    std::lock_guard lock(mutex_);
    StoragePtr best;
    for (auto copy = copies_.rbegin(); copy != copies_.rend() && limit > 0; ++copy) {
      int here = cost(array_of(*copy));
      if (here >= limit || !is_usable(*copy)) continue;
      limit = here;
      best = copy->storage;
    }
    return best;
  }
  std::size_t size() {
    std::lock_guard lock(mutex_);
    return copies_.size();
  }

 private:
  struct Copy {
    StoragePtr storage;
    bool arrived = false;  // true if the copy is known to be complete
  };
  static const DeviceArray& array_of(const Copy& copy) {
    return static_cast<const DeviceArray&>(*copy.storage);
  }
  static bool is_usable(Copy& copy);

  std::mutex mutex_;
  std::vector<Copy> copies_;
};

// False for a copy whose transfer failed, because each use of it would fail again. A copy that is
// still in transit is usable.
bool Copies::is_usable(Copy& copy) {
  const DeviceArray& array = array_of(copy);
  if (!array.is_live() || !array.is_current()) return false;
  if (copy.arrived) return true;
  bool arrived = true;
  for (std::size_t i = 0; i < array.num_shards(); ++i) {
    Result<pjrt::Event> event = array.buffers()[i].ready_event();
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
  Copies* copies = Copies::find(value);
  if (!copies) return {};
  auto cost = [&](const DeviceArray& array) {
    bool wanted = same_sharding(array.sharding(), sharding) &&
                  (sharding || &array.buffers()[0].device() == device);
    return wanted ? 0 : 1;
  };
  return copies->cheapest(cost, 1);
}

void remember_copy(const Storage& value, StoragePtr copy) {
  Copies::of(value).add(std::move(copy));
}

std::size_t num_copies(const Storage& value) {
  Copies* copies = Copies::find(value);
  return copies ? copies->size() : 0;
}

StoragePtr nearest_copy(const Value& value, const Sharding& target) {
  StoragePtr present(value.storage());
  Copies* copies = Copies::find(*present);
  if (!copies) return present;
  StoragePtr nearer =
      copies->cheapest([&](const DeviceArray& array) { return distance(array, target); },
                       distance(*present, target));
  return nearer ? nearer : present;
}

Tensor place_value(Runtime& runtime, const Value& value, const Sharding& sharding,
                   SourceLocation where) {
  return start_placing(runtime, value, sharding, where).value();
}

StartedTransfer start_placing(Runtime& runtime, const Value& value, const Sharding& sharding,
                              SourceLocation where) {
  StoragePtr storage(value.storage());
  const Sharding* present = storage->sharding();
  if (present && *present == sharding && is_on_this_client(*storage))
    return is_unplaced(value) ? make_array(value.type(), storage, where) : Tensor(value);
  // A host value that a program has used before continues from its copy on devices.
  if (!is_on_this_client(*storage) ||
      nearest_copy(value, sharding)->kind() != Storage::Kind::kDevice) {
    // For an abstract value, this throws that it has no elements.
    HostArray array = read_whole(runtime, *storage, where);
    return make_array(value.type(), place(runtime.platforms, array, sharding, where), where);
  }
  return start_move(runtime, value, sharding, where);
}

Tensor copy_with(Runtime& runtime, const Value& value, const Sharding& sharding,
                 SourceLocation where) {
  StoragePtr storage(value.storage());
  const Sharding* present = storage->sharding();
  if (present && *present == sharding && is_on_this_client(*storage))
    return make_array(value.type(), storage, where);
  if (StoragePtr known = find_copy(*storage, sharding, nullptr))
    return make_array(value.type(), known, where);
  Tensor copy = place_value(runtime, value, sharding, where);
  remember_copy(*storage, StoragePtr(copy.value().storage()));
  return copy;
}

}  // namespace meshard
