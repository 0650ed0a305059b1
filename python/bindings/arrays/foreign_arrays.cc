#include "python/bindings/arrays/foreign_arrays.h"

#include <unordered_map>

#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/arrays/tensors.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

PyObject* convert_foreign = nullptr;

bool has_protocol(PyTypeObject* type) {
  if (PyType_IsSubtype(type, &PyBytes_Type) || PyType_IsSubtype(type, &PyUnicode_Type))
    return false;
  if (PyType_GetSlot(type, Py_bf_getbuffer)) return true;
  for (const char* name : {"__dlpack__", "__array__", "__array_interface__", "__array_struct__",
                           "__cuda_array_interface__"})
    if (nb::hasattr(nb::handle(reinterpret_cast<PyObject*>(type)), name)) return true;
  return false;
}

}  // namespace

bool is_foreign_array(PyObject* object) {
  static auto* known = new std::unordered_map<PyTypeObject*, bool>;
  PyTypeObject* type = Py_TYPE(object);
  auto [entry, is_new] = known->try_emplace(type, false);
  if (is_new) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // a new class must not get its address
    // Not the entry: code of the class may run, and add others.
    const bool found = !tensor_in(object) && !is_numpy_array(object) && !is_numpy_scalar(object) &&
                       has_protocol(type);
    (*known)[type] = found;
    return found;
  }
  return entry->second;
}

bool is_array(PyObject* object) {
  return is_numpy_array(object) || is_numpy_scalar(object) || is_foreign_array(object);
}

Tensor tensor_of_foreign(PyObject* object) {
  if (!convert_foreign) throw nb::type_error("the package is not imported yet");
  nb::object made = nb::handle(convert_foreign)(nb::handle(object));
  return *tensor_in(made.ptr());
}

void set_foreign_arrays(nb::object convert) { convert_foreign = convert.release().ptr(); }

}  // namespace meshard::python
