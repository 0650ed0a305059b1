// Topologies, and meshes that follow them.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_topology([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
