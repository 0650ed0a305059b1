// Ops whose arguments in the array API standard differ from the C++ function's.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

void bind_standard_ops(nanobind::module_& module);

}  // namespace meshard::python
