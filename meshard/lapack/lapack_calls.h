// Calls of LAPACK from compiled programs: the custom calls of jaxlib's CPU programs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {
namespace pjrt {
class Client;
}

/// The targets that accept_lapack_call() takes, sorted: `lapack_dgetrf_ffi` and others, and
/// `lapack_pivots_ffi`, from the pivots of getrf [..., k], counted from 0, to an order of rows
/// [..., m]. Arguments, results and attributes follow jaxlib (jaxlib/cpu/lapack_kernels.h of
/// JAX 0.12): matrices in column-major order, the dimensions before the last two are a batch.
const std::vector<std::string>& lapack_targets();

/// Whether accept_lapack_call() takes the target.
bool is_lapack_target(std::string_view target);

/// Lets the programs of `client` call a routine of LAPACK. The calls of several devices run at the
/// same time; how many threads each may take is the library's (OPENBLAS_NUM_THREADS).
/// A call whose arguments or results do not fit the routine is the launch's error.
/// @error not found if there is no LAPACK (Lapack::open()) or it lacks the routine; not found if
/// !is_lapack_target(target); as pjrt::accept_host_calls()
Result<void> accept_lapack_call(const pjrt::Client& client, std::string_view target);

}  // namespace meshard
