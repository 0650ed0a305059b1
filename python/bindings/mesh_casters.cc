#include "python/bindings/mesh_casters.h"

#include "python/bindings/casters.h"

namespace nb = nanobind;

namespace meshard::python {

bool load_axis(PyObject* object, AxisList& axes) noexcept {
  std::int64_t position = 0;
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    axes.push_back(AxisRef(std::string_view(text, static_cast<std::size_t>(size))));
    return true;
  }
  if (load_integer(object, position)) {
    if (position < 0) return false;
    axes.push_back(AxisRef(position));
    return true;
  }
  AxisRef axis;
  if (!nb::try_cast<AxisRef>(nb::handle(object), axis)) return false;
  axes.push_back(std::move(axis));
  return true;
}

bool load_axes(PyObject* object, AxisList& axes) noexcept {
  if (load_axis(object, axes)) return true;
  if (!PyList_Check(object) && !PyTuple_Check(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Size(object); ++i) {
    PyObject* element = PySequence_GetItem(object, i);
    const bool loaded = element && load_axis(element, axes);
    Py_XDECREF(element);
    if (!loaded) return false;
  }
  return true;
}

}  // namespace meshard::python
