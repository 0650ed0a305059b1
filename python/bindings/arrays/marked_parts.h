// Tensors that would be views in NumPy: assignments to them would change another tensor, too.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

/// Remembers that a tensor was taken from another one. @pre both are tensors
void mark_part(nanobind::handle part, PyObject* base);

/// @error type error: the tensor was taken from another one, which is still there
void check_is_no_part(PyObject* tensor);

}  // namespace meshard::python
