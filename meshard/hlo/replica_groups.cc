// Tested in meshard/hlo/sharding_test.cc.
// Device groups of collectives, in all forms that plugins write.
#include <algorithm>

#include "meshard/hlo/internal/reader.h"
#include "meshard/hlo/sharding.h"

namespace meshard {
namespace {

using pjrt::WireReader;

}  // namespace

namespace internal {

Result<void> read_replica_group(std::string_view bytes, ReplicaGroups& to) {
  to.form = ReplicaGroups::Form::kListed;
  std::vector<std::int64_t> group;
  WireReader reader(bytes);
  while (auto field = reader.next())
    if (field->number == 1 && !append_numbers(*field, group)) return damaged("a replica group");
  if (!reader.ok()) return damaged("a replica group");
  to.listed.push_back(std::move(group));
  return {};
}

Result<void> read_iota_list(std::string_view bytes, ReplicaGroups& to) {
  to.form = ReplicaGroups::Form::kIota;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: to.group_count = field->as_int(); break;
      case 2: to.group_size = field->as_int(); break;
      case 3: good = append_numbers(*field, to.iota.dimensions); break;
      case 4: good = append_numbers(*field, to.iota.permutation); break;
      default: break;
    }
    if (!good) return damaged("an iota replica group list");
  }
  return reader.ok() ? Result<void>() : damaged("an iota replica group list");
}

Result<void> read_mesh_axes_list(std::string_view bytes, ReplicaGroups& to) {
  to.form = ReplicaGroups::Form::kMeshAxes;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(to.mesh, read_mesh(field->bytes));
    }
    if (field->number == 2) {
      MESHARD_ASSIGN_OR_RETURN(HloAxisRef axis, read_axis_ref(field->bytes));
      to.axes.push_back(axis);
    }
  }
  return reader.ok() ? Result<void>() : damaged("a mesh axes replica group list");
}

Result<void> read_device_list(std::string_view bytes, ReplicaGroups& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) MESHARD_RETURN_IF_ERROR(read_replica_group(field->bytes, to));
    if (field->number == 2) MESHARD_RETURN_IF_ERROR(read_iota_list(field->bytes, to));
  }
  return reader.ok() ? Result<void>() : damaged("a collective device list");
}

}  // namespace internal

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

Groups cut(const std::vector<std::int64_t>& devices, std::size_t size) {
  Groups groups;
  for (std::size_t at = 0; at < devices.size(); at += size)
    groups.emplace_back(devices.begin() + static_cast<std::ptrdiff_t>(at),
                        devices.begin() + static_cast<std::ptrdiff_t>(at + size));
  return groups;
}

// A part of a mesh axis, split where the axis references split it: [pre_size, size, rest] for each
// referenced sub-axis.
struct Digit {
  std::int64_t axis;
  std::int64_t pre;  // product of the axis' digits before this one
  std::int64_t size;
};

Result<std::vector<Digit>> cut_axes(const HloMesh& mesh, const std::vector<HloAxisRef>& axes) {
  std::vector<Digit> digits;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    std::int64_t size = mesh.axes[i].size;
    std::vector<std::int64_t> cuts = {1, size};
    for (const HloAxisRef& ref : axes)
      if (ref.axis == static_cast<std::int64_t>(i) && ref.part) {
        cuts.push_back(ref.part->pre_size);
        if (ref.part->size > size) return internal::damaged("a part of an axis");
        cuts.push_back(ref.part->pre_size * ref.part->size);
      }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.back() != size) return internal::damaged("a part of an axis");
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      if (cuts[k + 1] % cuts[k] != 0)
        return Error(ErrorCode::kUnimplemented,
                     cat("[hlo] the parts of mesh axis ", mesh.axes[i].name, " overlap"));
      digits.push_back({static_cast<std::int64_t>(i), cuts[k], cuts[k + 1] / cuts[k]});
    }
  }
  return digits;
}

Result<Groups> expand_mesh_axes(const ReplicaGroups& groups) {
  const HloMesh& mesh = groups.mesh;
  if (mesh.unknown_order)
    return Error(ErrorCode::kUnimplemented,
                 "[hlo] the device order of the mesh has an unsupported form");
  MESHARD_ASSIGN_OR_RETURN(std::vector<Digit> digits, cut_axes(mesh, groups.axes));
  // The device positions as a tensor with one dimension per digit, transposed so that the group's
  // digits come last.
  IotaOrder order;
  for (const Digit& digit : digits) order.dimensions.push_back(digit.size);
  std::vector<std::int64_t> in_group;
  std::int64_t group_size = 1;
  for (const HloAxisRef& ref : groups.axes) {
    if (ref.axis < 0 || ref.axis >= static_cast<std::int64_t>(mesh.axes.size()))
      return internal::damaged("a mesh axes replica group list");
    std::int64_t from = ref.part ? ref.part->pre_size : 1;
    std::int64_t to =
        ref.part ? from * ref.part->size : mesh.axes[static_cast<std::size_t>(ref.axis)].size;
    for (std::size_t i = 0; i < digits.size(); ++i)
      if (digits[i].axis == ref.axis && digits[i].pre >= from && digits[i].pre < to) {
        in_group.push_back(static_cast<std::int64_t>(i));
        group_size *= digits[i].size;
      }
  }
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (std::find(in_group.begin(), in_group.end(), static_cast<std::int64_t>(i)) == in_group.end())
      order.permutation.push_back(static_cast<std::int64_t>(i));
  order.permutation.insert(order.permutation.end(), in_group.begin(), in_group.end());
  MESHARD_ASSIGN_OR_RETURN(std::vector<std::int64_t> devices, order.expand());
  if (!mesh.device_ids.empty()) {
    if (mesh.device_ids.size() != devices.size()) return internal::damaged("a mesh");
    for (std::int64_t& device : devices) device = mesh.device_ids[static_cast<std::size_t>(device)];
  }
  return cut(devices, static_cast<std::size_t>(group_size));
}

}  // namespace

Result<Groups> ReplicaGroups::expand() const {
  switch (form) {
    case Form::kNone: return Groups();
    case Form::kListed: return listed;
    case Form::kMeshAxes: return expand_mesh_axes(*this);
    case Form::kIota: break;
  }
  MESHARD_ASSIGN_OR_RETURN(std::vector<std::int64_t> devices, iota.expand());
  if (group_size < 1 || group_count < 1 ||
      static_cast<std::int64_t>(devices.size()) / group_size != group_count ||
      static_cast<std::int64_t>(devices.size()) % group_size != 0)
    return internal::damaged("an iota replica group list");
  return cut(devices, static_cast<std::size_t>(group_size));
}

}  // namespace meshard
