#include "python/bindings/interpreter/casters.h"

namespace meshard::python {

bool load_integer(PyObject* object, std::int64_t& number) noexcept {
  if (PyBool_Check(object) || !PyIndex_Check(object)) return false;
  PyObject* index = PyNumber_Index(object);
  if (!index) {
    PyErr_Clear();
    return false;
  }
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_DECREF(index);
  return overflow == 0;
}

bool load_dimensions(PyObject* object, Dimensions& dimensions) noexcept {
  std::int64_t one = 0;
  if (load_integer(object, one)) {
    dimensions.push_back(one);
    return true;
  }
  if (PyUnicode_Check(object) || !PySequence_Check(object)) return false;
  const Py_ssize_t count = PySequence_Size(object);
  if (count < 0) PyErr_Clear();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* element = PySequence_GetItem(object, i);
    const bool loaded = element && load_integer(element, one);
    Py_XDECREF(element);
    if (!loaded) {
      PyErr_Clear();
      return false;
    }
    dimensions.push_back(one);
  }
  return count >= 0;
}

}  // namespace meshard::python
