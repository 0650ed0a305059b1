// The numbers and names of the C API's extensions.
#pragma once
#include <string_view>

struct PJRT_Extension_Base;

namespace meshard::pjrt {

/// Numbers of the extensions that meshard uses or checks for.
inline constexpr int kLayoutsExtension = 4;
inline constexpr int kFfiExtension = 5;
inline constexpr int kMemoryDescriptionsExtension = 6;
inline constexpr int kRawBufferExtension = 8;
inline constexpr int kPhaseCompileExtension = 9;
inline constexpr int kTpuTopologyExtension = 16;
inline constexpr int kShardingsExtension = 19;

/// The number of an extension in a plugin's list. Newer plugins have numbers that the enum in our
/// copy of the header does not, so that it must not be read as one.
int type_of(const PJRT_Extension_Base& extension);

/// `FFI` for 5; `unknown` for numbers not in this list.
std::string_view extension_name(int type);

}  // namespace meshard::pjrt
