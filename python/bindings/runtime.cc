// Devices, counters, waiting and transfers.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_runtime([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
