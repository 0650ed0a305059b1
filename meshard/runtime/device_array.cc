#include "meshard/runtime/device_array.h"

#include <set>

#include "meshard/base/free_list.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/released_arrays.h"
#include "meshard/runtime/tiles.h"

namespace meshard {

DeviceArray::~DeviceArray() { internal::ReleasedArrays::take_over(buffers_); }

void* DeviceArray::operator new(std::size_t) { return internal::FreeList<DeviceArray>::take(); }

void DeviceArray::operator delete(void* memory) { internal::FreeList<DeviceArray>::give(memory); }

std::int64_t DeviceArray::position(std::size_t i) const {
  if (has_each_position()) return static_cast<std::int64_t>(i);
  return *sharding()->mesh().position(device_id(i));
}

std::optional<std::size_t> DeviceArray::shard_at(std::int64_t position) const {
  if (has_each_position()) return static_cast<std::size_t>(position);
  std::int64_t id = sharding()->mesh().device_id(position);
  for (std::size_t i = 0; i < num_shards(); ++i)
    if (device_id(i) == id) return i;
  return std::nullopt;
}

std::vector<std::size_t> DeviceArray::distinct_shards() const {
  std::vector<std::size_t> shards;
  std::set<std::int64_t> tiles;
  bool all = has_each_position();
  for (std::size_t i = 0; i < num_shards(); ++i) {
    bool is_new = !sharding() || (all ? sharding()->replica_id(static_cast<std::int64_t>(i)) == 0
                                      : tiles.insert(tile_number(*sharding(), position(i))).second);
    if (is_new) shards.push_back(i);
  }
  return shards;
}

bool DeviceArray::has_all_parts() const {
  return has_each_position() ||
         static_cast<std::int64_t>(distinct_shards().size()) == sharding()->num_tiles();
}

Box DeviceArray::box(std::size_t i) const {
  if (!sharding()) return whole_box(type().shape);
  return box_of(*sharding(), type().shape, position(i));
}

std::string DeviceArray::gone() const {
  if (is_live()) return {};
  return donated_at_.known() ? cat("it was donated to a program at ", donated_at_)
                             : std::string("it was deleted");
}

void DeviceArray::check_live(SourceLocation where) const {
  check_not_forked(where);
  if (std::string reason = gone(); !reason.empty())
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[tensor] the value ", type(), " is gone: ", reason), where);
}

std::string DeviceArray::placement() const {
  std::vector<std::int64_t> ids;
  if (has_each_position())
    for (std::size_t i = 0; i < buffers_.size(); ++i) ids.push_back(device_id(i));
  else
    for (std::int64_t id : sharding()->mesh().device_ids()) ids.push_back(id);
  return cat(ids.size() == 1 ? "device " : "devices ", join(ids, ","),
             buffers_ ? buffers_[0].device().of_platform() : "");
}

std::string DeviceArray::local_text(SourceLocation where) const {
  if (!sharding()) return {};
  const Fabric* fabric = platforms_.find_fabric(sharding()->mesh());
  if (!fabric || fabric->reads_alone(*this)) return {};
  check_live(where);
  std::string text = cat(type(), " on ", placement(), ", of which this process has ",
                         num_shards() == 0 ? "none" : "");
  for (std::size_t i = 0; i < num_shards(); ++i)
    append(text, cat(i == 0 ? "device " : ", device ", device_id(i), " with ",
                     meshard::to_string(box(i)), ":\n", shard(i, where).to_string()));
  return text;
}

}  // namespace meshard
