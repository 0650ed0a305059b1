// Libraries that carry the communication between processes. They are built against what a machine
// has (MPI, Gloo) and opened at run time, so that meshard links neither.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/base/result.h"

namespace meshard::internal {

/// A value: one of these libraries.
struct CommunicationLibrary {
  const char* file;      ///< `libmeshard_mpi.so`
  const char* variable;  ///< the environment variable that may hold its path
  const char* function;  ///< the exported function, which returns a table of functions
  const char* wants;     ///< `MPI (Debian: libopenmpi-dev)`
};

/// The path of a library: its variable, else next to the library that holds this function or to the
/// program, in the lib folder beside it, or where meshard was installed.
/// @error not found, with all places
Result<std::string> find_communication_library(const CommunicationLibrary& library);

/// Opens it for good, and returns its table, which begins with its version and size.
/// @error unavailable if it cannot be loaded, for example because what it was built for is not
/// installed; failed precondition for another version; permission denied if another user could have
/// written it
Result<const void*> open_communication_library(const CommunicationLibrary& library,
                                               const std::string& path, std::uint32_t version,
                                               std::size_t size);

}  // namespace meshard::internal
