#include "meshard/runtime/device_array.h"

#include <array>
#include <set>

#include "meshard/base/free_list.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

using pjrt::ElementType;

constexpr std::array<std::pair<DType, ElementType>, kDTypeCount> kElementTypes = {{
    {DType::bool_, ElementType::kPred},
    {DType::i8, ElementType::kS8},
    {DType::i16, ElementType::kS16},
    {DType::i32, ElementType::kS32},
    {DType::i64, ElementType::kS64},
    {DType::u8, ElementType::kU8},
    {DType::u16, ElementType::kU16},
    {DType::u32, ElementType::kU32},
    {DType::u64, ElementType::kU64},
    {DType::f16, ElementType::kF16},
    {DType::bf16, ElementType::kBf16},
    {DType::f32, ElementType::kF32},
    {DType::f64, ElementType::kF64},
    {DType::f8e4m3fn, ElementType::kF8E4M3Fn},
    {DType::f8e5m2, ElementType::kF8E5M2},
    {DType::f8e4m3, ElementType::kF8E4M3},
    {DType::f8e3m4, ElementType::kF8E3M4},
    {DType::f8e4m3fnuz, ElementType::kF8E4M3Fnuz},
    {DType::f8e5m2fnuz, ElementType::kF8E5M2Fnuz},
    {DType::f8e4m3b11fnuz, ElementType::kF8E4M3B11Fnuz},
    {DType::f8e8m0fnu, ElementType::kF8E8M0Fnu},
    {DType::c64, ElementType::kC64},
    {DType::c128, ElementType::kC128},
}};

}  // namespace

pjrt::ElementType element_type_of(DType dtype) {
  return kElementTypes[static_cast<std::size_t>(dtype)].second;
}

Result<DType> dtype_of_element(pjrt::ElementType element) {
  for (const auto& [dtype, known] : kElementTypes)
    if (known == element) return dtype;
  return Error(ErrorCode::kUnimplemented,
               cat("[runtime] meshard has no dtype for the plugin's element type number ",
                   static_cast<int>(element)));
}

void* DeviceArray::operator new(std::size_t) { return internal::FreeList<DeviceArray>::take(); }

void DeviceArray::operator delete(void* memory) { internal::FreeList<DeviceArray>::give(memory); }

std::int64_t DeviceArray::position(std::size_t i) const {
  if (has_all_shards()) return static_cast<std::int64_t>(i);
  return *sharding()->mesh().position(device_id(i));
}

std::optional<std::size_t> DeviceArray::shard_at(std::int64_t position) const {
  if (has_all_shards()) return static_cast<std::size_t>(position);
  std::int64_t id = sharding()->mesh().device_id(position);
  for (std::size_t i = 0; i < num_shards(); ++i)
    if (device_id(i) == id) return i;
  return std::nullopt;
}

std::vector<std::size_t> DeviceArray::distinct_shards() const {
  std::vector<std::size_t> shards;
  std::set<std::int64_t> tiles;
  bool all = has_all_shards();
  for (std::size_t i = 0; i < num_shards(); ++i) {
    bool is_new = !sharding() || (all ? sharding()->replica_id(static_cast<std::int64_t>(i)) == 0
                                      : tiles.insert(tile_number(*sharding(), position(i))).second);
    if (is_new) shards.push_back(i);
  }
  return shards;
}

bool DeviceArray::has_all_parts() const {
  return has_all_shards() ||
         static_cast<std::int64_t>(distinct_shards().size()) == sharding()->num_tiles();
}

bool DeviceArray::is_read_locally() const {
  if (has_all_shards()) return true;
  if (!has_all_parts()) return false;
  // One process may have all parts and another one not, if they have different numbers of devices.
  const pjrt::Client* client = platforms_.find_started(sharding()->mesh());
  return !client || is_whole_in_each_process(*client, *sharding());
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
  if (has_all_shards())
    for (std::size_t i = 0; i < buffers_.size(); ++i) ids.push_back(device_id(i));
  else
    for (std::int64_t id : sharding()->mesh().device_ids()) ids.push_back(id);
  return cat(ids.size() == 1 ? "device " : "devices ", join(ids, ","),
             buffers_ ? buffers_[0].device().of_platform() : "");
}

std::string DeviceArray::local_text(SourceLocation where) const {
  if (is_read_locally()) return {};
  check_live(where);
  std::string text = cat(type(), " on ", placement(), ", of which this process has ",
                         num_shards() == 0 ? "none" : "");
  for (std::size_t i = 0; i < num_shards(); ++i)
    append(text, cat(i == 0 ? "device " : ", device ", device_id(i), " with ",
                     meshard::to_string(box(i)), ":\n", shard(i, where).to_string()));
  return text;
}

}  // namespace meshard
