// Decompresses gzip files.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// True if the bytes start as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The contents of a gzip file (RFC 1952), of all its members. Checksums are not compared.
/// @param most the most bytes that the contents may have
/// @error data loss: not a gzip file, or damaged; resource exhausted: more than `most` bytes
Result<std::string> gunzip(std::string_view bytes, std::size_t most = std::size_t{1} << 31);

}  // namespace meshard
