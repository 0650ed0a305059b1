// The contents of .npy files as bytes.
#pragma once
#include <string>
#include <string_view>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io::internal {

/// The array in the contents of a .npy file, copied.
/// @param place the prefix of error messages
/// @error as load_npy()
Result<HostArray> npy_from_bytes(std::string_view bytes, const std::string& place);

/// The contents of a .npy file. @param place for error messages @error as save_npy()
Result<std::string> npy_bytes(const HostArray& array, const std::string& place);

}  // namespace meshard::io::internal
