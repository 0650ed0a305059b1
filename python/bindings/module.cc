// The extension module meshard._meshard.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "meshard/core.h"
#include "python/bindings/bindings.h"
#include "python/bindings/dtypes.h"
#include "python/bindings/guarded.h"
#include "python/bindings/host_arrays.h"
#include "python/bindings/pytree.h"
#include "python/bindings/source_line.h"
#include "python/bindings/tensors.h"

namespace nb = nanobind;

NB_MODULE(_meshard, module) {
  using namespace meshard::python;
  nb::set_leak_warnings(false);  // tables of classes and dtypes live as long as the process
  module.def("set_package_folder", set_package_folder);
  module.def("set_dtype_objects", set_dtype_objects);
  module.def("set_numpy_types", set_numpy_types);
  bind_errors(module);
  bind_tensor(module);
  bind_pytree(module);
  bind_jit(module);
  bind_transforms(module);
  bind_control_flow(module);
}
