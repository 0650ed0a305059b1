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

std::optional<PadValue> load_pad_value(PyObject* object) noexcept {
  if (PyUnicode_Check(object)) {
    const char* text = PyUnicode_AsUTF8AndSize(object, nullptr);
    if (!text) PyErr_Clear();
    for (const auto& [kind, name] : EnumNames<ReduceKind>::kNames)
      if (text && name == std::string_view(text)) return PadValue(kind);
    return std::nullopt;
  }
  if (PyBool_Check(object)) return PadValue(object == Py_True);
  if (std::int64_t integer = 0; load_integer(object, integer)) return PadValue(integer);
  const double number = PyFloat_AsDouble(object);
  if (!PyErr_Occurred()) return PadValue(number);
  PyErr_Clear();
  return std::nullopt;
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
