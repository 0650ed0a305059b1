#include "meshard/explain/byte_text.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// Three significant digits, without trailing zeros.
std::string three_digits(double number) {
  int before = 1;
  for (double limit = 9.995; before < 4 && number >= limit; limit *= 10) ++before;
  char buffer[64];
  int behind = before >= 3 ? 0 : 3 - before;
  auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed, behind);
  (void)error;
  std::string text(buffer, end);
  if (behind == 0) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

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

std::string time_text(double seconds) {
  struct Unit {
    double size;
    std::string_view name;
  };
  if (seconds < 0) return cat("-", time_text(-seconds));
  if (std::isnan(seconds)) return "unknown";
  if (seconds > 1e15) return "unlimited";
  if (seconds == 0) return "0 s";
  for (Unit unit : {Unit{1, "s"}, Unit{1e-3, "ms"}, Unit{1e-6, "us"}})
    if (seconds >= 0.9995 * unit.size)
      return cat(three_digits(seconds / unit.size), " ", unit.name);
  return cat(three_digits(seconds / 1e-9), " ns");
}

}  // namespace meshard
