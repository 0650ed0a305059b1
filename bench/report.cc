#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace meshard::bench {
namespace {

// The number with three significant digits.
std::string number(double value) {
  char text[32];
  int decimals =
      value <= 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 3);
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace

void Report::add(Row row) {
  if (rows_.empty())
    std::printf("%-26s %10s %10s  %-5s %7s  %-6s  %s\n", "", "ours", beside_.c_str(), "unit",
                "ratio", "", "goal");
  std::printf("%-26s %10s %10s  %-5s %7s  %-6s  %s\n", row.name.c_str(), number(row.ours).c_str(),
              row.floor == 0 ? "-" : number(row.floor).c_str(), row.unit.c_str(),
              row.floor == 0 ? "-" : number(row.ratio()).c_str(), row.met() ? "met" : "missed",
              row.goal.c_str());
  std::string beside = row.floor_name.empty() ? "" : "; " + beside_ + ": " + row.floor_name;
  std::printf("%26s %s%s%s%s\n", "", row.work.c_str(), beside.c_str(), row.note.empty() ? "" : "; ",
              row.note.c_str());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

std::string Report::summary() const {
  auto met = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.met(); });
  return std::to_string(met) + " met, " + std::to_string(std::ptrdiff_t(rows_.size()) - met) +
         " missed";
}

std::string Report::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const Row& row : rows_)
    all.push_back({{"name", row.name},
                   {"work", row.work},
                   {"unit", row.unit},
                   {"ours", row.ours},
                   {"floor", row.floor},
                   {"floor_name", row.floor_name},
                   {"ratio", row.ratio()},
                   {"goal", row.goal},
                   {"bound", row.bound},
                   {"higher_is_better", row.higher_is_better},
                   {"also", row.also},
                   {"met", row.met()},
                   {"note", row.note}});
  return all.dump(1) + "\n";
}

void Report::take(const std::string& json) {
  for (const nlohmann::json& row : nlohmann::json::parse(json))
    rows_.push_back({.name = row["name"],
                     .work = row["work"],
                     .unit = row["unit"],
                     .ours = row["ours"],
                     .floor = row["floor"],
                     .floor_name = row["floor_name"],
                     .goal = row["goal"],
                     .bound = row["bound"],
                     .higher_is_better = row["higher_is_better"],
                     .also = row["also"],
                     .note = row["note"]});
}

}  // namespace meshard::bench
