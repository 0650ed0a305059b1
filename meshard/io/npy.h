// NumPy's .npy format for one array (NEP 1): a Python dict that describes the array, then its
// bytes.
#pragma once
#include <string>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// Loads the array in a .npy file without copying its bytes (see MappedFile). Column-major
/// (Fortran) arrays and those of the other byte order are copied.
/// @error as MappedFile::open; invalid argument for a file that is not .npy, is truncated or has
/// extra bytes; unimplemented for dtypes other than bool, integers, f16, f32, f64 and complex
/// numbers (text, records).
Result<HostArray> load_npy(const std::string& path);

/// Writes a .npy file, atomically replacing the file at `path`.
/// @error unimplemented for dtypes other than bool, integers, f16, f32, f64 and complex numbers; as
/// NewFile.
Result<void> save_npy(const std::string& path, const HostArray& array);

}  // namespace meshard::io
