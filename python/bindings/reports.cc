// explain, predict, check_sharded, and what they return.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_reports([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
