#include "meshard/runtime/internal/device_assignment.h"

#include <string>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {

const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where) {
  const pjrt::Device* device = client.find_device(id);
  if (device && device->addressable()) return *device;
  std::string known;
  for (const pjrt::Device* each : client.addressable_devices())
    append(known, cat(known.empty() ? "" : ",", each->id()));
  throw Error(
      ErrorCode::kNotFound,
      cat("[runtime] device ", id, " does not exist: platform ", client.name(), " has devices ",
          known, client.platform() == "cpu" ? " (MESHARD_CPU_DEVICES sets their number)" : ""),
      where);
}

std::vector<int> device_assignment(const pjrt::Client& client, const std::optional<Mesh>& mesh,
                                   SourceLocation where) {
  if (!mesh) return {client.addressable_devices()[0]->id()};
  std::vector<int> ids;
  for (std::int64_t id : mesh->device_ids()) ids.push_back(device_of(client, id, where).id());
  return ids;
}

}  // namespace meshard
