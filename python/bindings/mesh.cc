// Meshes, axes, device groups and submeshes.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_mesh([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
