#include "meshard/explain/cost/link_options.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  double divisor;  // 20 / 1e6 is the double next to 20e-6; 20 * 1e-6 is not
};
constexpr Unit kRates[] = {{"B/s", 1, 1},      {"KB/s", 1e3, 1},  {"MB/s", 1e6, 1},
                           {"GB/s", 1e9, 1},   {"TB/s", 1e12, 1}, {"Kbit/s", 1e3, 8},
                           {"Mbit/s", 1e6, 8}, {"Gbit/s", 1e9, 8}};
constexpr Unit kTimes[] = {{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1, 1}};

// A number with a unit; none if it is not one.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : units)
    if (rest == unit.name) return number * unit.factor / unit.divisor;
  return std::nullopt;
}

}  // namespace

Result<LinkFigures> LinkFigures::parse(std::string_view text) {
  std::size_t comma = text.find(',');
  std::optional<double> bandwidth = quantity(text.substr(0, comma), kRates), latency = 0.0;
  if (comma != std::string_view::npos) latency = quantity(text.substr(comma + 1), kTimes);
  if (!bandwidth || !latency || *bandwidth == 0)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[explain] invalid link `", text,
                     "`: expected a bandwidth (B/s, KB/s, MB/s, GB/s, TB/s, Kbit/s, Mbit/s or "
                     "Gbit/s) and perhaps a latency (ns, us, ms or s), such as 10GB/s,20us"));
  return LinkFigures{*bandwidth, *latency};
}

std::string LinkFigures::to_string() const {
  double rate = bandwidth;
  std::size_t unit = 0;
  while (unit < 4 && rate >= 1000) rate /= 1000, ++unit;
  char number[40];
  std::snprintf(number, sizeof number, "%.4g ", rate);
  std::string out = cat(number, kRates[unit].name);
  return latency > 0 ? cat(out, ", ", time_text(latency)) : out;
}

}  // namespace meshard
