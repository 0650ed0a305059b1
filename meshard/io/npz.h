// NumPy's .npz format: a zip archive of .npy files.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// Arrays with their names, in the order of the file.
using NamedArrays = std::vector<std::pair<std::string, HostArray>>;

/// Loads the arrays in a .npz file.
/// @error as MappedFile::open; invalid argument: the file is damaged, or no archive. unimplemented:
/// a compressed array (numpy.savez_compressed), or a dtype that load_npy() does not read.
Result<NamedArrays> load_npz(const std::string& path);

/// Writes a .npz file, as numpy.savez does, and atomically replaces the file at `path`.
/// @error invalid argument: the arrays take 4 GiB or more; as save_npy()
Result<void> save_npz(const std::string& path, const NamedArrays& arrays);

}  // namespace meshard::io
