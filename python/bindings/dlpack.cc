// DLPack, both ways.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_dlpack([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
