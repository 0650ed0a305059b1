// The parts of the extension module. Each function adds one of them.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

void bind_control_flow(nanobind::module_& module);
void bind_jit(nanobind::module_& module);
void bind_transforms(nanobind::module_& module);

}  // namespace meshard::python
