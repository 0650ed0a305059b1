#include "meshard/explain/time_text.h"

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
