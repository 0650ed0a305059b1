// Errors of calls whose arguments fit no form of a bound function.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

/// Makes the functions and methods of a module, its submodules and classes name the argument that
/// is wrong (meshard._calls), where nanobind lists all forms of the function. A call that succeeds
/// costs one more jump. Called once, after everything is bound.
void name_wrong_arguments(nanobind::module_& module);

}  // namespace meshard::python
