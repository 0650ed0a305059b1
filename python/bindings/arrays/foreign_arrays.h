// Arrays of other libraries: objects with DLPack, `__array__`, `__array_interface__` or a buffer.
#pragma once
#include <nanobind/nanobind.h>

#include "meshard/graph/tensor.h"

namespace meshard::python {

/// True for an array that is not NumPy's: its class has one of the protocols for arrays, or the
/// buffer protocol. Text (bytes too) is not an array.
bool is_foreign_array(PyObject* object);

/// True for any array: NumPy's, a NumPy scalar, or one of another library.
bool is_array(PyObject* object);

/// A tensor with a copy of the elements of an array of another library, as they are now.
/// @pre is_foreign_array(object); the lock is held
/// @error Python's TypeError: the array has no elements in memory, or of no dtype of meshard
Tensor tensor_of_foreign(PyObject* object);

/// Sets the Python function that makes a tensor of such an array. Called once, by the package.
void set_foreign_arrays(nanobind::object convert);

}  // namespace meshard::python
