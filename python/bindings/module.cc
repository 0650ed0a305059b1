// The extension module meshard._meshard.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "meshard/core.h"
#include "meshard/lapack/lapack.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/call_errors.h"
#include "python/bindings/interpreter/dtypes.h"
#include "python/bindings/interpreter/guarded.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
// Made by op_bindings.py.
void bind_ops_0(nb::module_& ops, nb::module_& random);
void bind_ops_1(nb::module_& ops, nb::module_& random);
void bind_ops_2(nb::module_& ops, nb::module_& random);
void bind_ops_3(nb::module_& ops, nb::module_& random);
}  // namespace meshard::python

namespace {

// While alive, Python does not search for unreachable objects: the thousands of objects of a new
// module would start that several times, and all of them stay.
class NoCollection {
 public:
  NoCollection() : was_on_(PyGC_Disable() != 0) {}
  ~NoCollection() {
    if (was_on_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;

 private:
  bool was_on_;
};

}  // namespace

NB_MODULE(_meshard, module) {
  using namespace meshard::python;
  NoCollection no_collection;
  module.attr("__version__") = MESHARD_PYTHON_VERSION;
  nb::set_leak_warnings(false);  // tables of classes and dtypes live as long as the process
  module.def("add_library_folder", add_library_folder);
  module.def("search_lapack_in", meshard::Lapack::search_in);
  set_dtype_objects(nb::module_::import_("meshard._dtypes").attr("DTYPES"));
  nb::module_ numpy = nb::module_::import_("numpy");
  set_numpy_types(numpy.attr("ndarray"), numpy.attr("generic"));
  find_main_thread();
  bind_errors(module);
  bind_mesh(module);
  bind_layout(module);
  bind_sharding(module);
  bind_topology(module);
  bind_tensor(module);
  bind_pytree(module);
  bind_jit(module);
  bind_transforms(module);
  bind_control_flow(module);
  bind_marking(module);
  bind_runtime(module);
  bind_traces(module);
  bind_shards(module);
  bind_distributed(module);
  bind_dlpack(module);
  bind_files(module);
  bind_imported_programs(module);
  bind_processes(module);
  bind_callbacks(module);
  bind_reports(module);
  bind_plan(module);
  bind_nn(module);
  bind_optim(module);
  bind_pipeline(module);
  nb::module_ ops = module.def_submodule("ops", "Every op, as in C++.");
  nb::module_ random = module.def_submodule("random", "Random numbers.");
  bind_ops_0(ops, random);
  bind_ops_1(ops, random);
  bind_ops_2(ops, random);
  bind_ops_3(ops, random);
  name_wrong_arguments(module);
}
