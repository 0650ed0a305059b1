// What a compiler says when a program does not fit.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace meshard {

/// A value: bytes of a device's main memory that a program needs and that there are.
struct MemoryShortage {
  std::int64_t needed = 0;
  std::int64_t available = 0;
  /// `needed` counts temporaries alone; arguments and results come on top.
  bool temporaries_only = false;
  friend bool operator==(const MemoryShortage&, const MemoryShortage&) = default;
};

/// Whether a compiler's message says that the memory does not suffice.
bool says_out_of_memory(std::string_view message);

/// The numbers in libtpu's messages `the total memory required for HLO temporaries (48.00G) exceeds
/// available HBM (15.75G)` and `Used 17.39G of 15.75G hbm`, which are rounded to two digits (K, M,
/// G: 2^10, 2^20, 2^30). None: no such numbers.
std::optional<MemoryShortage> memory_shortage(std::string_view message);

}  // namespace meshard
