#include "meshard/topology/hybrid_mesh.h"

#include "meshard/topology/board_order.h"
#include "meshard/topology/physical_grid.h"
#include "meshard/topology/tpu_generation.h"

namespace meshard {
namespace {

using Devices = std::vector<DeviceAttributes>;

std::int64_t places_in(IntView shape) { return IntTuple::flat(shape).product(); }

// True for grids with several devices per chip that JAX and torch_xla do not support.
bool cores_are_an_extra(const PhysicalGrid& grid, const Devices& devices) {
  const TpuGeneration* tpu = tpu_generation_of(devices.front().kind);
  return grid.has_cores && !(tpu && tpu->has_hybrid_cores);
}

std::vector<std::int64_t> ids_of(const Devices& devices) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : devices) ids.push_back(device.id);
  return ids;
}

// Splits the list of devices into `count` granules, or into one if `count` does not divide it.
std::vector<Devices> parts_of_list(const Topology& topology, std::int64_t count) {
  const Devices& all = topology.devices();
  if (count < 1 || std::ssize(all) % count != 0) return {all};
  std::vector<Devices> parts;
  auto size = std::ssize(all) / count;
  for (std::int64_t k = 0; k < count; ++k)
    parts.emplace_back(all.begin() + k * size, all.begin() + (k + 1) * size);
  return parts;
}

// The ids of a granule's devices in the order of a mesh of this shape.
std::vector<std::int64_t> ids_in_granule(const Devices& devices, IntView shape,
                                         const HybridOptions& options, SourceLocation where) {
  if (places_in(shape) != std::ssize(devices))
    throw_invalid(where, "[topology] a mesh of ", join(shape, " x "), " needs ", places_in(shape),
                  " devices, but there are ", devices.size());
  bool alone = devices.size() == 1;  // needs no place
  if ((options.allow_no_coords || alone) && devices.front().coords.empty()) return ids_of(devices);
  if (auto ids = board_order(devices, shape)) return *std::move(ids);
  PhysicalGrid grid = physical_grid(devices, where);
  bool extra = cores_are_an_extra(grid, devices);
  if (options.contiguous_processes && extra)
    throw Error(ErrorCode::kFailedPrecondition,
                "[topology] contiguous processes need chips with one device each", where);
  if (options.contiguous_processes) grid = contiguous_grid(grid, shape, where);
  // Allowing only whole directions would reject most shapes on such grids.
  AxisSplit split = extra ? AxisSplit::kWhereNeeded : options.split;
  TorusAssignment assignment =
      assign_torus(grid.shape, shape, split, kTorusDirections + (grid.has_cores ? 1 : 0), where);
  return in_mesh_order(grid.ids, assignment, grid.shape);
}

void check_outer(const Topology& topology, const std::vector<Devices>& granules, IntView inner,
                 IntView outer, const HybridOptions& options, SourceLocation where) {
  bool by_slice = options.granule == Granule::kSlice;
  std::string_view what = by_slice ? "slices" : "processes";
  std::int64_t count = std::ssize(granules);
  if (inner.size() != outer.size())
    throw_invalid(where, "[topology] ", inner.size(), " inner sizes (", join(inner, ", "), "), ",
                  outer.size(), " outer sizes (", join(outer, ", "),
                  "): give the same number of both");
  if (places_in(outer) == count) return;
  if (by_slice && count == 1 && !topology.devices().front().slice_index)
    throw_invalid(where, "[topology] the outer shape ", join(outer, " x "),
                  " needs several slices, but the devices have no slice index");
  if (places_in(outer) == 1)
    throw_invalid(where, "[topology] there are ", count, ' ', what,
                  ", and no outer shape divides the mesh among them");
  throw_invalid(where, "[topology] the outer shape ", join(outer, " x "), " needs ",
                places_in(outer), ' ', what, ", but there are ", count);
}

}  // namespace

Mesh hybrid_mesh(const Topology& topology, IntView inner, IntView outer, const MaybeNames& names,
                 const HybridOptions& options, SourceLocation where) {
  std::vector<Devices> granules = granules_of(topology, options.granule);
  IntVector ones(inner.size(), 1);
  IntView all_outer = outer.empty() ? IntView(ones) : outer;
  // Virtual devices all have the same slice and process.
  if (options.allow_no_coords && !topology.has_coords() && granules.size() == 1)
    granules = parts_of_list(topology, places_in(all_outer));
  check_outer(topology, granules, inner, all_outer, options, where);
  IntVector sizes;
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    sizes.push_back(inner[axis] * all_outer[axis]);
  std::vector<MeshAxis> axes = mesh_axes(sizes, names, where);
  check_mesh_axes(axes, where);
  std::vector<std::vector<std::int64_t>> meshes;
  for (const Devices& devices : granules)
    meshes.push_back(ids_in_granule(devices, inner, options, where));
  return Mesh(std::move(axes), join_granules(meshes, inner, all_outer), where);
}

Mesh torus_mesh(const Topology& topology, IntView shape, const MaybeNames& names,
                const HybridOptions& options, SourceLocation where) {
  std::vector<MeshAxis> axes = mesh_axes(shape, names, where);
  check_mesh_axes(axes, where);
  return Mesh(std::move(axes), ids_in_granule(topology.devices(), shape, options, where), where);
}

}  // namespace meshard
