// Sharding annotations and manual regions.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_marking([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
