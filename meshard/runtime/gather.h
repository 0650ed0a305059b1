// Whole values in the host memory of one or all processes.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// The whole value, in all processes of the run, wherever its devices are. Called by all of them,
/// at the same place in the program. Tensor::to_host() does the same among the processes of the
/// value's mesh, and does not communicate if each of them has the whole value.
///
/// In a run of one process, and for a value without a sharding, of which each process has its own,
/// this is Tensor::to_host().
/// @error errors of computing the value; unavailable if the communication fails
HostArray gather(const Tensor& tensor, SourceLocation where = SourceLocation::current());

/// The whole value in process `process`; nothing in the others. Only the parts that it does not
/// have are sent. Called by all processes of the run, at the same place in the program.
/// @error as gather(); invalid argument if there is no such process
std::optional<HostArray> gather_to(const Tensor& tensor, int process,
                                   SourceLocation where = SourceLocation::current());

/// Whether other processes have shards of a computed value.
bool is_across_processes(const Tensor& tensor);

namespace internal {

/// The processes that have devices of these meshes, ascending, on the CPU devices of a run of
/// several processes; otherwise empty.
std::vector<int> processes_of_run(std::span<const Mesh> meshes);
/// `x` so that each of these processes reads it locally: to_host() and item() communicate no more.
/// If one of them lacks parts of the value, this copies it to the first device of each, as
/// transfer() does, and waits for nothing. Otherwise the result is `x` itself. Called by these
/// processes and those of the value, at the same place in the program.
/// @error as transfer()
Tensor in_each_process(In x, std::span<const int> processes);
/// Reports that this process failed in a step that others wait for. They get an error that contains
/// this
/// one; later launches and transfers of this process that communicate fail until the runtime is
/// restarted.
void give_up_across_processes(const Error& error);

}  // namespace internal

}  // namespace meshard
