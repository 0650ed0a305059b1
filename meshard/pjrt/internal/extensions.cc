// Tested in tests/plugin/pjrt_fake_test.cc.
#include "meshard/pjrt/internal/extensions.h"

#include <array>
#include <cstring>

#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::pjrt {
namespace {

// 0 to 15 come from the header of API 0.81; 16, 18 and 19 are reported by newer plugins.
constexpr std::array<std::string_view, 20> kNames = {
    "GpuCustomCall",
    "Profiler",
    "CustomPartitioner",
    "Stream",
    "Layouts",
    "FFI",
    "MemoryDescriptions",
    "Triton",
    "RawBuffer",
    "PhaseCompile",
    "Example",
    "Unknown",
    "CrossHostTransfers",
    "ExecutableMetadata",
    "Callback",
    "HostAllocator",
    "TpuTopology",
    "",
    "Megascale",
    "Shardings",
};

}  // namespace

int type_of(const PJRT_Extension_Base& extension) {
  int type;
  static_assert(sizeof extension.type == sizeof type);
  std::memcpy(&type, &extension.type, sizeof type);
  return type;
}

std::string_view extension_name(int type) {
  auto index = static_cast<std::size_t>(type);
  return index < kNames.size() && !kNames[index].empty() ? kNames[index] : "unknown";
}

std::string_view Extension::name() const { return extension_name(type); }

}  // namespace meshard::pjrt
