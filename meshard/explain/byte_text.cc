#include "meshard/explain/byte_text.h"

#include <string_view>

#include "meshard/base/cat.h"

namespace meshard {

std::string byte_text(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr std::int64_t kStep = 1024;
  if (bytes < 0) return cat("-", byte_text(bytes == INT64_MIN ? INT64_MAX : -bytes));
  if (bytes < kStep) return cat(bytes, " B");
  std::int64_t unit = kStep;
  std::size_t i = 0;
  // 1023.95 of a unit and more would print as 1024 of that unit.
  while (i + 1 < std::size(kUnits) && bytes / unit >= kStep - 1 &&
         static_cast<double>(bytes) / static_cast<double>(unit) >= 1023.95) {
    unit *= kStep;
    ++i;
  }
  auto tenths = static_cast<std::int64_t>(
      static_cast<double>(bytes) / static_cast<double>(unit) * 10.0 + 0.5);
  if (tenths % 10 == 0) return cat(tenths / 10, " ", kUnits[i]);
  return cat(tenths / 10, ".", tenths % 10, " ", kUnits[i]);
}

}  // namespace meshard
