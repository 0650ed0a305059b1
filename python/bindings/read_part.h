// Reading elements of values without compiling a program for each.
#pragma once
#include <optional>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard::python {

/// Remembers that `part` is the result of an index into `whole`. Only the last few parts of small
/// values that are computed already are remembered, for this thread.
/// @pre the part was recorded by this thread just now
void remember_part(const Tensor& whole, const Tensor& part);

/// The computed value that reading `part` needs: the whole value of a remembered part that is not
/// computed yet, otherwise the part itself.
Tensor needed_to_read(const Tensor& part);

/// The value of a remembered part that is not computed yet, taken from the whole value on the host;
/// none for any other tensor. The same as Tensor::to_host(), without a program.
/// @error as Tensor::to_host() of the whole value
std::optional<HostArray> read_part(const Tensor& part, const SourceLocation& where);

}  // namespace meshard::python
