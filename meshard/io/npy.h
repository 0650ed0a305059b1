// NumPy's format for one array (NEP 1): a line of Python about the array, then its bytes.
#pragma once
#include <string>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// The array of a .npy file, whose bytes are used where they are in the file (see MappedFile).
/// Column-major (Fortran) files and those of the other byte order are copied.
/// @error as MappedFile::open; invalid argument for what is no .npy file, cut short or with bytes
/// too many; unimplemented for dtypes that meshard lacks (complex, text, records).
Result<HostArray> load_npy(const std::string& path);

/// Writes a .npy file, replacing the file at `path` in one step.
/// @error unimplemented for bf16 and 8-bit floats, which NumPy has no name for; as NewFile.
Result<void> save_npy(const std::string& path, const HostArray& array);

}  // namespace meshard::io
