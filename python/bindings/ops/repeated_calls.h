// Functions of Python that record the same when they are called alike.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

void bind_repeated_calls(nanobind::module_& module);

}  // namespace meshard::python
