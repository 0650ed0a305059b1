// Reading elements of values without compiling a program for each.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "meshard/array/host_array.h"
#include "meshard/base/source_location.h"

namespace meshard::python {

/// Notes in the object of `part`, the result of an index into the tensor of the object `whole`,
/// where its elements are. Only if the whole value is small and computed already, directly or as a
/// part of another one.
/// @pre the part was recorded by this thread just now
void note_part(PyObject* whole, PyObject* part);

/// The value of a noted part that is not computed yet, taken from the whole value on the host; none
/// for any other tensor. The same as Tensor::to_host(), without a program.
/// @pre the interpreter's lock is held; it is released while the value is read
/// @error as Tensor::to_host() of the whole value
std::optional<HostArray> read_part(PyObject* part, const SourceLocation& where);

}  // namespace meshard::python
