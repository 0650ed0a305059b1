// plan, and what it returns.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_plan([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
