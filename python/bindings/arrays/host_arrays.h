// NumPy arrays as host arrays, and back.
#pragma once
#include <nanobind/nanobind.h>

#include "meshard/array/host_array.h"

namespace meshard::python {

/// How the memory of a NumPy array may be used.
enum class Memory {
  kCopy,             ///< the values are copied
  kShareIfReadOnly,  ///< used in place if it is contiguous and read-only; otherwise copied
  kShare,            ///< used in place if it is contiguous: the caller promises not to write to it
};

/// True for an instance of numpy.ndarray.
bool is_numpy_array(PyObject* object);
/// True for a NumPy scalar: numpy.float32(1).
bool is_numpy_scalar(PyObject* object);

/// The values of a NumPy array or scalar.
/// @error type error: its dtype is none of meshard's; elements are masked; its class gives them
/// another meaning, such as units.
HostArray host_array_of(nanobind::handle array, Memory memory);

/// A read-only NumPy array on the same memory.
nanobind::object numpy_array(const HostArray& array);

/// Sets numpy.ndarray and numpy.generic. Called once, by the package.
void set_numpy_types(nanobind::object array, nanobind::object scalar);

}  // namespace meshard::python
