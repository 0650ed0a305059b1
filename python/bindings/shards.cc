// Shards of tensors.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_shards([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
