#include "meshard/runtime/internal/device_assignment.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/runtime/tiles.h"

namespace meshard {

const pjrt::Device& device_of(const pjrt::Client& client, std::int64_t id, SourceLocation where) {
  if (const pjrt::Device* device = client.find_device(id)) return *device;
  std::string known;
  for (std::size_t i = 0; i < client.device_count(); ++i)
    append(known, cat(known.empty() ? "" : ",", client.device(i).id()));
  bool is_alone = client.device_count() == client.addressable_devices().size();
  const char* hint = client.platform() != "cpu" ? ""
                     : is_alone                 ? " (MESHARD_CPU_DEVICES sets their number)"
                                : " in the processes of the run (MESHARD_CPU_DEVICES sets the "
                                  "number of each)";
  throw Error(ErrorCode::kNotFound,
              cat("[runtime] device ", id, " does not exist: platform ", client.name(),
                  " has devices ", known, hint),
              where);
}

std::vector<LocalPosition> local_positions(const pjrt::Client& client, const Mesh& mesh,
                                           SourceLocation where) {
  std::vector<LocalPosition> positions;
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    const pjrt::Device& device = device_of(client, mesh.device_id(p), where);
    if (device.addressable()) positions.push_back({p, &device});
  }
  return positions;
}

Reach reach_of(const pjrt::Client& client, const Mesh& mesh) {
  if (client.device_count() == client.addressable_devices().size()) return Reach::kHere;
  bool here = false, there = false;
  for (std::int64_t id : mesh.device_ids())
    (client.find_device(id)->addressable() ? here : there) = true;
  return !there ? Reach::kHere : here ? Reach::kAcross : Reach::kElsewhere;
}

std::vector<int> processes_of(const pjrt::Client& client, const Mesh& mesh) {
  std::set<int> processes;
  for (std::int64_t id : mesh.device_ids())
    processes.insert(client.find_device(id)->process_index());
  return {processes.begin(), processes.end()};
}

bool is_whole_in_each_process(const pjrt::Client& client, const Sharding& sharding) {
  if (sharding.is_fully_replicated()) return true;
  std::map<int, std::set<std::int64_t>> tiles;  // by process
  for (std::int64_t p = 0; p < sharding.mesh().size(); ++p)
    tiles[client.find_device(sharding.mesh().device_id(p))->process_index()].insert(
        tile_number(sharding, p));
  return std::ranges::all_of(tiles, [&](const auto& each) {
    return static_cast<std::int64_t>(each.second.size()) == sharding.num_tiles();
  });
}

std::vector<int> device_assignment(const pjrt::Client& client, const std::optional<Mesh>& mesh,
                                   SourceLocation where) {
  if (!mesh) return {client.addressable_devices()[0]->id()};
  std::vector<int> ids;
  for (std::int64_t id : mesh->device_ids()) ids.push_back(device_of(client, id, where).id());
  return ids;
}

}  // namespace meshard
