// HMAC-SHA256 (RFC 2104), and random bytes for it.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::internal {

/// The 32 bytes of the code of `message` under `key`.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Compares two codes in a time that does not depend on where they differ.
bool equal_codes(std::string_view a, std::string_view b);

/// Bytes from the system's random number generator.
/// @error the system's error
Result<std::string> random_bytes(std::size_t count);

}  // namespace meshard::internal
