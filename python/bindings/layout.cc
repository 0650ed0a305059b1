// Layouts.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_layout([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
