// The parts of the bindings of meshes, layouts, shardings and topologies.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

void bind_axes(nanobind::module_& module);
void bind_placements(nanobind::module_& module);

}  // namespace meshard::python
