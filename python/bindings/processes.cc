// Runs of several processes.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_processes([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
