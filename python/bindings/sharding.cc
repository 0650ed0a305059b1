// Partition specs and shardings.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_sharding([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
