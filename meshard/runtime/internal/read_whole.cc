// Tested in meshard/runtime/device_array_test.cc.
#include "meshard/runtime/internal/read_whole.h"

#include "meshard/graph/leaf.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/reshard.h"

namespace meshard {
namespace {

// The value with all its parts on each device of its mesh.
HostArray read_replicated(Runtime& runtime, const DeviceArray& array, SourceLocation where) {
  Tensor value = make_array(array.type(), StoragePtr(const_cast<DeviceArray*>(&array)), where);
  Sharding replicated =
      Sharding::replicated(array.sharding()->mesh(), static_cast<std::size_t>(array.type().rank()));
  return reshard(runtime, value.value(), replicated, where).value().storage()->to_host(where);
}

}  // namespace

HostArray read_whole(Runtime& runtime, const Storage& storage, SourceLocation where) {
  if (storage.kind() != Storage::Kind::kDevice || !storage.sharding() || !storage.gone().empty())
    return storage.to_host(where);
  const auto& array = static_cast<const DeviceArray&>(storage);
  if (!array.sharding()->unreduced_axes().empty() && array.is_current())
    return read_replicated(runtime, array, where);
  Fabric* fabric = runtime.platforms.find_fabric(array.sharding()->mesh());
  if (!fabric || !fabric->is_shared() || fabric->reads_alone(array)) return array.to_host(where);
  HostArray value = HostArray::uninitialized(array.type());
  if (fabric->gather(array, Fabric::kProcessesOfValue, value.mutable_bytes(), where)) return value;
  return read_replicated(runtime, array, where);
}

}  // namespace meshard
