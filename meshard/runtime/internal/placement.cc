// Tested in meshard/runtime/internal/copies_test.cc.
#include "meshard/runtime/internal/placement.h"

#include "meshard/graph/leaf.h"
#include "meshard/runtime/internal/copies.h"
#include "meshard/runtime/internal/device_to_device.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/read_whole.h"

namespace meshard {

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
