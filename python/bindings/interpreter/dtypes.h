// Element types: NumPy's dtype objects, with those of ml_dtypes.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "meshard/array/dtype/dtype.h"

namespace meshard::python {

/// Sets the dtype objects of all DTypes, in the order of the enumeration. Called once, by the
/// package.
void set_dtype_objects(nanobind::sequence objects);

/// Borrowed.
PyObject* dtype_object(DType dtype);

/// The DType of a dtype object, a scalar type (`np.float32`), a name (`"float32"`, `"f32"`), or one
/// of Python's types `bool`, `int`, `float` and `complex`, which give the default dtype of their
/// kind. None if it is something else; then no Python error is set.
std::optional<DType> dtype_of(PyObject* object);

}  // namespace meshard::python

template <>
struct nanobind::detail::type_caster<meshard::DType> {
  NB_TYPE_CASTER(meshard::DType, const_name("typing.Any"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    std::optional<meshard::DType> found = meshard::python::dtype_of(source.ptr());
    if (found) value = *found;
    return found.has_value();
  }
  static handle from_cpp(meshard::DType dtype, rv_policy, cleanup_list*) noexcept {
    return handle(meshard::python::dtype_object(dtype)).inc_ref();
  }
};
