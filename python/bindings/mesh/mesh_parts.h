// The parts of the bindings of meshes, layouts, shardings and topologies.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

#include "meshard/mesh/builders.h"
#include "meshard/mesh/mesh.h"

namespace meshard::python {

void bind_axes(nanobind::module_& module);
void bind_rank_map(nanobind::module_& module);
void bind_device_groups(nanobind::module_& module);
void bind_global_mesh(nanobind::module_& module);
void bind_layout_algebra(nanobind::module_& module);
void bind_pictures(nanobind::module_& module);
void bind_placements(nanobind::module_& module);
void bind_tiles(nanobind::module_& module);

/// The mesh of the arguments of Python's Mesh.
/// @error invalid argument: they do not describe a mesh.
Mesh mesh_of(nanobind::object axes, nanobind::object names, nanobind::object device_ids,
             const std::vector<std::string>& explicit_axes);
/// The axes that a dictionary of sizes, a sequence of (name, size) pairs or MeshAxis objects, or
/// sizes with names describe.
/// @error invalid argument: it is something else.
std::vector<MeshAxis> axes_given(nanobind::handle axes, nanobind::handle names);
/// Names for axes: None, a name, or a sequence of names.
MaybeNames names_given(nanobind::handle names);
/// Device ids: a range, a RankMap, or a sequence or an array of integers.
RankMap rank_map_given(nanobind::handle ids);
/// `Mesh({'data': 2})`, as Python writes it.
std::string mesh_code(const Mesh& mesh);

}  // namespace meshard::python
