// Reading elements of values without compiling a program for each.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>

#include "meshard/array/host_array.h"
#include "meshard/base/source_location.h"
#include "meshard/graph/tensor.h"

namespace meshard::python {

/// The Python object of `part`, the result of an index into the tensor of the object `whole`. If
/// the whole value is small, computed already and unplaced, the part is taken on the host: no
/// program is compiled for its elements. If it is placed, the object notes where they are, for
/// read_part().
/// @pre the part was recorded by this thread just now; the interpreter's lock is held
nanobind::object part_object(PyObject* whole, Tensor part, const SourceLocation& where);

/// The value of a noted part that is not computed yet, taken from the whole value on the host; none
/// for any other tensor. The same as Tensor::to_host(), without a program.
/// @pre the interpreter's lock is held; it is released while the value is read
/// @error as Tensor::to_host() of the whole value
std::optional<HostArray> read_part(PyObject* part, const SourceLocation& where);

}  // namespace meshard::python
