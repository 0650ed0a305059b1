// Device ids, groups of devices, submeshes, and the mesh that is used where none is given.
#include <memory>
#include <optional>

#include "meshard/base/error.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/mesh/rank_map.h"
#include "meshard/mesh/submeshes.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::vector<std::int64_t> list_of_ids(const RankMap& map) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(map.size()));
  for (std::int64_t i = 0; i < map.size(); ++i) ids.push_back(map[i]);
  return ids;
}

// NumPy's __array__ of device ids.
nb::object ids_array(std::vector<std::int64_t> ids, nb::handle dtype) {
  nb::object array = numpy_array(HostArray::from_vector(std::move(ids)));
  return dtype.is_none() ? array : nb::object(array.attr("astype")(dtype));
}

// A mesh that a `with` statement makes the thread's.
class Scope {
 public:
  explicit Scope(Mesh mesh) : mesh_(std::move(mesh)) {}
  const Mesh& enter() {
    if (scope_) throw Error(ErrorCode::kFailedPrecondition, "[mesh scope] is entered already");
    scope_ = std::make_unique<MeshScope>(mesh_);
    return mesh_;
  }
  void leave() { scope_.reset(); }

 private:
  Mesh mesh_;
  std::unique_ptr<MeshScope> scope_;
};

}  // namespace

void bind_rank_map(nb::module_& module) {
  nb::class_<RankMap> type(
      module, "RankMap",
      "Distinct device ids by position: a sequence. Ids at regular steps take a few integers, "
      "whatever their number. Made from a range, or from a sequence or an array of ids.\n\n"
      "Error: no id; an id is negative or occurs twice.");
  bind_equality(type);
  bind_text(
      type, [](const RankMap& map) { return map.to_string(); },
      [](const std::string& text) {
        return parse_whole("rank map", text,
                           [](TextScanner& scanner) { return RankMap::read(scanner); })
            .value();
      });
  bind_items(
      type, [](const RankMap& map, std::size_t i) { return map[static_cast<std::int64_t>(i)]; },
      "The device at a position.");
  type.def(
          "__init__",
          [](RankMap* self, nb::handle ids) { new (self) RankMap(rank_map_given(ids)); },
          nb::arg("ids"))
      .def("__hash__", python_hash<RankMap>)
      .def("__repr__",
           [](const RankMap& map) {
             if (!map.is_affine())
               return cat("RankMap(", repr_text(nb::cast(list_of_ids(map))), ")");
             const std::int64_t step = map.size() > 1 ? map[1] - map[0] : 1;
             return cat("RankMap(range(", map[0], ", ", map[0] + step * map.size(),
                        step == 1 ? "" : cat(", ", step), "))");
           })
      .def("__contains__",
           [](const RankMap& map, std::int64_t id) { return map.find(id).has_value(); })
      .def(
          "__array__",
          [](const RankMap& map, nb::handle dtype, nb::handle) {
            return ids_array(list_of_ids(map), dtype);
          },
          nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none())
      .def("tolist", list_of_ids, "The ids as a list.")
      .def("find", &RankMap::find, nb::arg("id"),
           "The position of a device; None if it is not in the map.")
      .def("count_below", &RankMap::count_below, nb::arg("id"),
           "The number of devices with a smaller id.")
      .def("same_devices", &RankMap::same_devices, nb::arg("other"),
           "True if both have the same devices, in any order.")
      .def("contains", &RankMap::contains, nb::arg("other"),
           "True if every device of `other` is in this map.")
      .def("meets", &RankMap::meets, nb::arg("other"), "True if the two have a device in common.")
      .def("simplest", &RankMap::simplest,
           "The same map stored without a list if its ids are at regular steps.")
      .def("sorted", &RankMap::sorted, "The same devices in ascending order.");
}

void bind_device_groups(nb::module_& module) {
  nb::class_<DeviceGroup> group(
      module, "DeviceGroup",
      "The devices of one group of a mesh, in mesh order: a sequence. Made by `Mesh.group`.");
  bind_copies(group);
  bind_items(
      group, [](const DeviceGroup& it, std::size_t k) { return it[static_cast<std::int64_t>(k)]; },
      "The device id of a member.");
  group.def("__str__", &DeviceGroup::to_string)
      .def("__repr__",
           [](const DeviceGroup& it) { return cat("DeviceGroup(", it.to_string(), ")"); })
      .def("__contains__",
           [](const DeviceGroup& it, std::int64_t id) { return it.local_rank(id).has_value(); })
      .def(
          "__array__",
          [](const DeviceGroup& it, nb::handle dtype, nb::handle) {
            return ids_array(it.to_vector(), dtype);
          },
          nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none())
      .def("tolist", &DeviceGroup::to_vector, "The device ids as a list.")
      .def_prop_ro("ranks", &DeviceGroup::ranks, "The device ids as a RankMap.")
      .def("local_rank", &DeviceGroup::local_rank, nb::arg("device_id"),
           "The index of a device in the group, in mesh order; None if it is not in the group.")
      .def("sorted_local_rank", &DeviceGroup::sorted_local_rank, nb::arg("device_id"),
           "The index of a device among the members sorted by device id, or None.")
      .def("is_same_object", &DeviceGroup::is_same_object, nb::arg("other"),
           "True if both are the same group of one root, even if they come from different meshes.");

  nb::class_<DeviceGroups> groups(
      module, "DeviceGroups",
      "All groups along some axes of a mesh: a sequence of DeviceGroup, each made when it is "
      "accessed. They are numbered by their index along the remaining axes. Made by "
      "`Mesh.groups`.");
  bind_copies(groups);
  bind_sequence(
      groups, [](const DeviceGroups& all) { return all.count(); },
      [](const DeviceGroups& all, std::size_t g) { return all[static_cast<std::int64_t>(g)]; },
      "The group with this number.");
  groups
      .def("__repr__",
           [](const DeviceGroups& all) {
             return cat("<", all.count(), " groups of ", all.group_size(), " devices>");
           })
      .def_prop_ro("group_size", &DeviceGroups::group_size, "The number of devices of each group.")
      .def("find", &DeviceGroups::find, nb::arg("device_id"),
           "The number of the group that contains a device, or None.")
      .def("of", &DeviceGroups::of, nb::arg("device_id"),
           "The group that contains a device, or None.")
      .def("tolist", &DeviceGroups::to_vectors, "The device ids of all groups, as lists.")
      .def("is_same_object", &DeviceGroups::is_same_object, nb::arg("other"),
           "True if both are groups along the same axes of one root.");

  nb::class_<Submeshes> submeshes(
      module, "Submeshes",
      "The submeshes along some axes, one for each index along the remaining axes: a sequence. "
      "Each is made when it is accessed. Made by `Mesh.submeshes`.");
  bind_copies(submeshes);
  bind_items(
      submeshes,
      [](const Submeshes& all, std::size_t i) { return all[static_cast<std::int64_t>(i)]; },
      "The submesh with this number.");
  submeshes.def("__repr__",
                [](const Submeshes& all) { return cat("<", all.size(), " submeshes>"); });
}

void bind_global_mesh(nb::module_& module) {
  module.def("global_mesh", &global_mesh,
             "The mesh of this thread's innermost MeshScope, else the process's mesh, else None.");
  module.def(
      "require_global_mesh", [] { return require_global_mesh(SourceLocation{}); },
      "The global mesh; without one, an error.\n\nError: failed precondition: there is no "
      "global mesh.");
  module.def("set_global_mesh", &set_global_mesh, nb::arg("mesh").none(),
             "Sets the process's mesh; None removes it. All threads see the change at once, except "
             "threads inside a MeshScope.");
  nb::class_<Scope> type(module, "MeshScope",
                         "Makes a mesh this thread's global mesh: `with MeshScope(mesh): ...`. "
                         "Scopes nest; other threads are not affected.");
  type.attr("__module__") = "meshard";
  type.def(nb::init<Mesh>(), nb::arg("mesh"))
      .def("__enter__", &Scope::enter, nb::rv_policy::copy)
      .def("__exit__", [](Scope& scope, const nb::args&) { scope.leave(); });
}

}  // namespace meshard::python
