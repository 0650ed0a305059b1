#include "python/bindings/interpreter/dtypes.h"

#include <array>
#include <string>

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::array<PyObject*, kDTypeCount> objects{};

std::optional<DType> dtype_of_object(PyObject* object) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (objects[static_cast<std::size_t>(i)] == object) return static_cast<DType>(i);
  for (int i = 0; i < kDTypeCount; ++i) {
    const int equal = PyObject_RichCompareBool(objects[static_cast<std::size_t>(i)], object, Py_EQ);
    if (equal == 1) return static_cast<DType>(i);
    if (equal < 0) PyErr_Clear();
  }
  return std::nullopt;
}

// The dtype object that NumPy makes of a scalar type or a name; null if it makes none.
nb::object numpy_dtype(PyObject* object) {
  static PyObject* make = nb::object(nb::module_::import_("numpy").attr("dtype")).release().ptr();
  PyObject* made = PyObject_CallFunctionObjArgs(make, object, nullptr);
  if (!made) PyErr_Clear();
  return nb::steal(made);
}

}  // namespace

void set_dtype_objects(nb::sequence all) {
  std::size_t i = 0;
  for (nb::handle object : all) {
    if (i == objects.size()) break;
    objects[i++] = object.inc_ref().ptr();
  }
  if (i != objects.size()) throw nb::value_error("one dtype object is needed for each DType");
}

PyObject* dtype_object(DType dtype) { return objects[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_of(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) {
      PyErr_Clear();
      return std::nullopt;
    }
    if (Result<DType> named = parse_dtype({text, static_cast<std::size_t>(size)}); named.ok())
      return *named;
  } else if (PyType_Check(object)) {
    if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
    if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return kDefaultInteger;
    if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDefaultFloat;
    if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return complex_dtype(kDefaultFloat);
  } else {
    return dtype_of_object(object);
  }
  nb::object made = numpy_dtype(object);
  return made ? dtype_of_object(made.ptr()) : std::nullopt;
}

}  // namespace meshard::python
