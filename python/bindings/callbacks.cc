// Python functions that compiled programs call.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_callbacks([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
