// Topologies, and meshes that follow them.
#include "meshard/topology/topology.h"

#include <optional>

#include "meshard/base/error.h"
#include "meshard/mesh/builders.h"
#include "meshard/mesh/device_type.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/runtime/device_topology.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/layout_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using DeviceState = std::tuple<std::int64_t, std::int64_t, std::optional<std::int64_t>, Dimensions,
                               std::int64_t, std::string>;
using Wrap = std::optional<std::vector<bool>>;

DeviceState state_of(const DeviceAttributes& device) {
  return {device.id,     device.process_index, device.slice_index,
          device.coords, device.core_on_chip,  device.kind};
}

DeviceAttributes device_of(const DeviceState& state) {
  auto [id, process, slice, coords, core, kind] = state;
  return {id, process, slice, coords, core, kind};
}

Topology topology_of_devices(std::vector<DeviceAttributes> devices, const Wrap& wrap) {
  if (!wrap) return Topology(std::move(devices), SourceLocation{});
  return Topology(std::move(devices), Topology::Wrap(wrap->begin(), wrap->end()), SourceLocation{});
}

Wrap wrap_of(const Topology& topology) {
  if (!topology.wrap()) return std::nullopt;
  return std::vector<bool>(topology.wrap()->begin(), topology.wrap()->end());
}

bool same_topology(const Topology& a, const Topology& b) {
  return a.devices() == b.devices() && a.wrap() == b.wrap();
}

Granule granule_named(std::string_view name) {
  for (Granule granule : {Granule::kSlice, Granule::kProcess})
    if (to_string(granule) == name) return granule;
  throw_invalid({}, "[hybrid mesh] the granule is 'slice' or 'process', not ", quoted(name));
}

AxisSplit split_named(std::string_view name) {
  if (name == "where_needed") return AxisSplit::kWhereNeeded;
  if (name == "never") return AxisSplit::kNever;
  throw_invalid({}, "[hybrid mesh] directions are split 'where_needed' or 'never', not ",
                quoted(name));
}

std::string device_code(const DeviceAttributes& device) {
  std::string code = cat("DeviceAttributes(", device.id);
  if (device.process_index != 0) code += cat(", process_index=", device.process_index);
  if (device.slice_index) code += cat(", slice_index=", *device.slice_index);
  if (!device.coords.empty())
    code += ", coords=" + repr_text(int_tuple_object(IntTuple::flat(device.coords)));
  if (device.core_on_chip != 0) code += cat(", core_on_chip=", device.core_on_chip);
  if (!device.kind.empty()) code += ", kind=" + quoted(device.kind);
  return code + ")";
}

void bind_device_attributes(nb::module_& module) {
  nb::class_<DeviceAttributes> type(
      module, "DeviceAttributes",
      "A device's location in its hardware: an immutable value. Unknown attributes are empty.");
  bind_equality(type);
  bind_copies(type);
  type.def(
          "__init__",
          [](DeviceAttributes* self, std::int64_t id, std::int64_t process_index,
             std::optional<std::int64_t> slice_index, const Dimensions& coords,
             std::int64_t core_on_chip, std::string kind) {
            new (self) DeviceAttributes{id,     process_index, slice_index,
                                        coords, core_on_chip,  std::move(kind)};
          },
          nb::arg("id"), nb::kw_only(), nb::arg("process_index") = 0,
          nb::arg("slice_index").none() = nb::none(), nb::arg("coords") = nb::tuple(),
          nb::arg("core_on_chip") = 0, nb::arg("kind") = "")
      .def("__getstate__", state_of)
      .def("__setstate__",
           [](DeviceAttributes& self, const DeviceState& state) {
             new (&self) DeviceAttributes(device_of(state));
           })
      .def("__hash__",
           [](const DeviceAttributes& device) { return nb::hash(nb::cast(state_of(device))); })
      .def("__str__", &DeviceAttributes::to_string)
      .def("__repr__", device_code)
      .def_ro("id", &DeviceAttributes::id, "The device id.")
      .def_ro("process_index", &DeviceAttributes::process_index,
              "The process (host) that drives the device.")
      .def_ro("slice_index", &DeviceAttributes::slice_index,
              "The index of the separate machine (TPU slice) that it belongs to, or None.")
      .def_ro("coords", &DeviceAttributes::coords,
              "The coordinates of its chip in the grid of its slice: x, y, z.")
      .def_ro("core_on_chip", &DeviceAttributes::core_on_chip,
              "The number of the device on its chip.")
      .def_ro("kind", &DeviceAttributes::kind, "`TPU v5 lite`, ...");
}

void bind_topology_class(nb::module_& module) {
  nb::class_<Topology> type(
      module, "Topology",
      "The devices of a machine and how they are connected, in the order in which a plugin lists "
      "them: an immutable value. `tpu_topology` makes that of a named TPU.\n\n`wrap` says for x, y "
      "and z whether the grid of a slice closes to a ring; without it the kind of the devices "
      "decides.\n\nError: no devices; an id occurs twice; devices have different numbers of "
      "coordinates; a negative index; `wrap` does not have one value for each coordinate.");
  bind_copies(type);
  type.def(
          "__init__",
          [](Topology* self, std::vector<DeviceAttributes> devices, const Wrap& wrap) {
            new (self) Topology(topology_of_devices(std::move(devices), wrap));
          },
          nb::arg("devices"), nb::arg("wrap").none() = nb::none())
      .def(
          "__eq__",
          [](const Topology& a, nb::handle b) -> nb::object {
            if (!nb::isinstance<Topology>(b)) return nb::borrow(Py_NotImplemented);
            return nb::bool_(same_topology(a, *nb::inst_ptr<Topology>(b)));
          },
          nb::arg("other").none(), nb::is_operator())
      .def("__hash__",
           [](const Topology& topology) {
             return nb::hash(nb::cast(std::pair(topology.size(), topology.to_string())));
           })
      .def(
          "__getstate__",
          [](const Topology& topology) { return std::pair(topology.devices(), wrap_of(topology)); })
      .def("__setstate__",
           [](Topology& self, std::pair<std::vector<DeviceAttributes>, Wrap> state) {
             new (&self) Topology(topology_of_devices(std::move(state.first), state.second));
           })
      .def("__str__", &Topology::to_string)
      .def("__repr__", [](const Topology& topology) { return cat("<Topology: ", topology, ">"); })
      .def("__len__", &Topology::size)
      .def_prop_ro("devices", &Topology::devices, "The devices.")
      .def_prop_ro("size", &Topology::size, "The number of devices.")
      .def_prop_ro("has_coords", &Topology::has_coords, "True if the devices have coordinates.")
      .def_prop_ro("kind", &Topology::kind, "The kind of the first device.")
      .def_prop_ro("wrap", wrap_of, "Which directions close, or None if that is not known.")
      .def_prop_ro("extent", &Topology::extent,
                   "The number of chips in each direction, in the box around all devices.");
  module.def(
      "tpu_topology", [](std::string_view name) { return tpu_topology(name).value(); },
      nb::arg("name"),
      "The topology of a named TPU, without one: `v5e:8x8`, `v5p:4x4x4`, `v5e:16x16*2` for two "
      "slices, `v4:4x4x4/megacore` for a v4 with one device per chip. Families: v2, v3, v4, v5e, "
      "v5p, v6e, tpu7x.\n\nError: an unknown name; a size that does not fit.");
  module.def(
      "tpu_generations",
      [] {
        std::vector<std::string_view> names;
        for (const TpuGeneration& each : tpu_generations()) names.push_back(each.name);
        return names;
      },
      "The names of the generations of TPUs, oldest first.");
  module.def(
      "runtime_topology",
      [](const std::string& device_type) {
        const SourceLocation where = caller_line();
        Unlocked unlocked;
        return device_type.empty() ? runtime_topology(where) : runtime_topology(device_type, where);
      },
      nb::arg("device_type") = "",
      "The topology of the devices of the default platform, or of another device type. Starts its "
      "client. In a run of CPU devices on several machines, each machine is a slice.");
  module.def(
      "granules_of",
      [](const Topology& topology, std::string_view granule) {
        return granules_of(topology, granule_named(granule));
      },
      nb::arg("topology"), nb::arg("granule") = "slice",
      "The devices of each granule (`slice` or `process`), which has fast links inside, in the "
      "order of the granule indices.");
}

void bind_hops(nb::module_& module) {
  nb::class_<AxisHops> axis(module, "AxisHops",
                            "The hops between neighbors along one axis of a mesh, including from "
                            "the last to the first.");
  bind_copies(axis);
  axis.def("__str__", &AxisHops::to_string)
      .def("__getstate__",
           [](const AxisHops& hops) {
             return std::tuple(hops.mean, hops.worst, hops.steps, hops.between_slices);
           })
      .def("__setstate__",
           [](AxisHops& self,
              const std::tuple<double, std::int64_t, std::int64_t, std::int64_t>& state) {
             auto [mean, worst, steps, between_slices] = state;
             new (&self) AxisHops{mean, worst, steps, between_slices};
           })
      .def("__repr__", [](const AxisHops& hops) { return cat("<AxisHops ", hops, ">"); })
      .def_ro("mean", &AxisHops::mean, "The mean number of links per step within a slice.")
      .def_ro("worst", &AxisHops::worst, "The largest number of links of a step.")
      .def_ro("steps", &AxisHops::steps, "The number of steps within slices.")
      .def_ro("between_slices", &AxisHops::between_slices, "The number of steps between slices.");
  nb::class_<MeshHops> type(module, "MeshHops", "The hops along each axis of a mesh.");
  bind_copies(type);
  type.def("__str__", [](const MeshHops& hops) { return hops.to_string(); })
      .def("__getstate__",
           [](const MeshHops& hops) { return std::pair(hops.axes, hops.wrap_known); })
      .def("__setstate__",
           [](MeshHops& self, std::pair<std::vector<AxisHops>, bool> state) {
             new (&self) MeshHops{std::move(state.first), state.second};
           })
      .def("__repr__",
           [](const MeshHops& hops) { return cat("<MeshHops ", hops.to_string(), ">"); })
      .def_ro("axes", &MeshHops::axes, "Those of each axis.")
      .def_ro("wrap_known", &MeshHops::wrap_known,
              "Whether it is known which directions close. If not, all count as open.")
      .def_prop_ro("worst_mean", &MeshHops::worst_mean, "The largest mean among the axes.")
      .def_prop_ro("mean", &MeshHops::mean, "The mean over all steps within slices.")
      .def(
          "to_string", [](const MeshHops& hops, const Mesh& mesh) { return hops.to_string(mesh); },
          nb::arg("mesh"), "The text with the names of the axes.");
  module.def(
      "mesh_hops",
      [](const Mesh& mesh, const Topology& topology) {
        return mesh_hops(mesh, topology, SourceLocation{});
      },
      nb::arg("mesh"), nb::arg("topology"),
      "Measures the hops along each axis of a mesh: the sum of the coordinate differences, the "
      "short way around in directions that close.\n\nError: a device is not in the topology; the "
      "devices have no coordinates; the mesh has several rows.");
}

HybridOptions hybrid_options(std::string_view split, std::string_view granule,
                             bool contiguous_processes, bool allow_no_coords) {
  return {split_named(split), granule_named(granule), contiguous_processes, allow_no_coords};
}

void bind_topology_meshes(nb::module_& module) {
  module.def(
      "hybrid_mesh",
      [](const Topology& topology, const Dimensions& inner, const Dimensions& outer,
         nb::handle names, std::string_view split, std::string_view granule,
         bool contiguous_processes, bool allow_no_coords) {
        return hybrid_mesh(topology, inner, outer, names_given(names),
                           hybrid_options(split, granule, contiguous_processes, allow_no_coords),
                           SourceLocation{});
      },
      nb::arg("topology"), nb::arg("inner"), nb::arg("outer") = nb::tuple(),
      nb::arg("names").none() = nb::none(), nb::kw_only(), nb::arg("split") = "where_needed",
      nb::arg("granule") = "slice", nb::arg("contiguous_processes") = false,
      nb::arg("allow_no_coords") = false,
      R"(A mesh with axes of size inner[i] * outer[i]; the outer index selects the granule.

    pods = tpu_topology("v5e:16x16*2")
    hybrid_mesh(pods, (1, 16, 16), (2, 1, 1), ("dp", "fsdp", "tp"))  # dp over the slices

The device orders are those of JAX and of torch_xla. `split`: `where_needed` or `never`, whether
several axes may share a direction of the torus. `granule`: `slice` or `process`, what the outer
shape counts. `contiguous_processes` keeps the devices of each process together.
`allow_no_coords` uses devices without coordinates (virtual CPUs) in the order of their list.

Error: shapes of different lengths, or that do not match the granules; the devices of a granule
do not fill a grid; a direction would have to be split, and `split` does not allow it.)");
  module.def(
      "torus_mesh",
      [](const Topology& topology, const Dimensions& shape, nb::handle names,
         std::string_view split, bool contiguous_processes, bool allow_no_coords) {
        return torus_mesh(topology, shape, names_given(names),
                          hybrid_options(split, "slice", contiguous_processes, allow_no_coords),
                          SourceLocation{});
      },
      nb::arg("topology"), nb::arg("shape"), nb::arg("names").none() = nb::none(), nb::kw_only(),
      nb::arg("split") = "where_needed", nb::arg("contiguous_processes") = false,
      nb::arg("allow_no_coords") = false,
      "A mesh over all devices of a topology, treated as one granule whatever their slices.\n\n"
      "Error: as hybrid_mesh.");
  nb::class_<RingMesh> type(module, "RingMesh", "A mesh and the hops between its neighbors.");
  bind_copies(type);
  type.def("__str__", &RingMesh::to_string)
      .def("__getstate__", [](const RingMesh& ring) { return std::pair(ring.mesh, ring.hops); })
      .def("__setstate__",
           [](RingMesh& self, std::pair<Mesh, std::optional<MeshHops>> state) {
             new (&self) RingMesh{std::move(state.first), std::move(state.second)};
           })
      .def("__repr__", [](const RingMesh& ring) { return cat("<RingMesh ", ring, ">"); })
      .def_ro("mesh", &RingMesh::mesh, "The mesh.")
      .def_ro("hops", &RingMesh::hops, "The hops; None if the devices have no coordinates.");
  module.def(
      "ring_mesh",
      [](const Topology& topology, const Dimensions& shape, nb::handle names,
         const Dimensions& outer) {
        return ring_mesh(topology, shape, names_given(names), outer, SourceLocation{});
      },
      nb::arg("topology"), nb::arg("shape"), nb::arg("names").none() = nb::none(),
      nb::arg("outer") = nb::tuple(),
      R"(A mesh of a given shape whose axes are rings of few hops. Every shape is supported.

    ring_mesh(tpu_topology("v5e:8x8"), (64,)).hops.axes[0].mean  # 1.0

`outer`: the number of slices that each axis spans; empty: chosen automatically.

Error: the product of the sizes is not the number of devices; `outer` does not divide the sizes,
or its product is not the number of slices.)");
  module.def(
      "assign_torus",
      [](const Dimensions& physical, const Dimensions& logical, std::string_view split) {
        std::vector<Dimensions> taken;
        for (IntVector& each :
             assign_torus(physical, logical, split_named(split), kTorusDirections, SourceLocation{})
                 .taken)
          taken.push_back(std::move(each));
        return taken;
      },
      nb::arg("physical"), nb::arg("logical"), nb::arg("split") = "where_needed",
      "How many places of each physical direction each axis takes, as JAX and torch_xla choose: "
      "taken[direction][axis].\n\nError: a direction would have to be split, and `split` is "
      "`never`; the two products of sizes differ.");
}

void bind_builders(nb::module_& module) {
  module.def(
      "mesh_1d",
      [](std::optional<std::int64_t> device_count, std::string name) {
        const SourceLocation where = caller_line();
        if (device_count) return mesh_1d(*device_count, std::move(name), where);
        Unlocked unlocked;
        return mesh_1d(std::move(name), where);
      },
      nb::arg("device_count").none() = nb::none(), nb::arg("name") = "axis_0",
      "The mesh of devices 0 to device_count-1 along one axis; without a number, of all devices of "
      "the default platform, whose client it starts.");
  module.def(
      "mesh_on",
      [](std::int64_t device_count, nb::handle axes, nb::handle device_ids) {
        const RankMap ids = rank_map_given(device_ids);
        std::vector<std::int64_t> list;
        for (std::int64_t i = 0; i < ids.size(); ++i) list.push_back(ids[i]);
        return mesh_on(device_count, axes_given(axes, nb::none()), std::move(list),
                       SourceLocation{});
      },
      nb::arg("device_count"), nb::arg("axes"), nb::arg("device_ids"),
      "A mesh over some of the devices 0 to device_count-1, in any order.\n\nError: more ids than "
      "devices; an id outside 0 to device_count-1; the errors of Mesh.");
  module.def(
      "get_logical_mesh", [](const Mesh& mesh) { return numpy_array(get_logical_mesh(mesh)); },
      nb::arg("mesh"),
      "The device id at each coordinate, as an int64 array of the mesh's shape. For a slice of "
      "several rows, the rows are an additional first dimension.");
  module.def("axes_are_unnamed", &axes_are_unnamed, nb::arg("mesh"),
             "True if all axes have their default names, `axis_0`, `axis_1`, ...");
  module.def("is_axis_name", &is_axis_name, nb::arg("text"), "True if the text can name an axis.");
  module.def("platform_name", &platform_name, nb::arg("mesh"),
             "The mesh's device type; without one the name of the default platform, or `any` as "
             "long as that is not known.");
  module.def("same_platform", &same_platform, nb::arg("first"), nb::arg("second"),
             "True if both are for devices of one platform. An empty device type means the default "
             "platform; as long as that is not known, it fits any other.");
  module.def(
      "overlap",
      [](const Mesh& first, const Mesh& second) { return to_string(overlap(first, second)); },
      nb::arg("first"), nb::arg("second"),
      "How the sets of devices of two meshes overlap: `none`, `some`, `first in second`, `second "
      "in first` or `same`.");
}

}  // namespace

void bind_topology(nb::module_& module) {
  bind_device_attributes(module);
  bind_topology_class(module);
  bind_hops(module);
  bind_topology_meshes(module);
  bind_builders(module);
  bind_pictures(module);
}

}  // namespace meshard::python
