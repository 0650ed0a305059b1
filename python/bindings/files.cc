// Checkpoints, safetensors and npy files.
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace meshard::python {

void bind_files([[maybe_unused]] nb::module_& module) {}

}  // namespace meshard::python
