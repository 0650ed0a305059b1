// Whole values in the host memory of one or all processes.
#pragma once
#include <optional>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The whole value, in all processes of the run, wherever its devices are. Called by all of them,
/// at the same place in the program. Tensor::to_host() does the same among the processes of the
/// value's mesh, and does not communicate if each of them has the whole value.
///
/// In a run of one process, and for a value without a sharding, which each process has for itself,
/// this is Tensor::to_host().
/// @error errors of computing the value; unavailable if the communication fails
HostArray gather(const Tensor& tensor, SourceLocation where = SourceLocation::current());

/// The whole value in process `process`; nothing in the others. Only the parts that it does not
/// have are sent. Called by all processes of the run, at the same place in the program.
/// @error as gather(); invalid argument if there is no such process
std::optional<HostArray> gather_to(const Tensor& tensor, int process,
                                   SourceLocation where = SourceLocation::current());

/// The processes that have shards of a computed value, ascending. None if each process has the
/// value for itself, as without a sharding.
std::vector<int> processes_with_shards(const Tensor& tensor);

}  // namespace meshard
