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

void print_titles(const std::string& beside) {
  std::printf("%-26s %10s %10s  %-5s %7s  %-6s  %s\n", "", "ours", beside.c_str(), "unit", "ratio",
              "", "goal");
}

void print_row(const Row& row, const std::string& beside) {
  std::printf("%-26s %10s %10s  %-5s %7s  %-6s  %s\n", row.name.c_str(), number(row.ours).c_str(),
              row.floor == 0 ? "-" : number(row.floor).c_str(), row.unit.c_str(),
              row.floor == 0 ? "-" : number(row.ratio()).c_str(), row.met() ? "met" : "missed",
              row.goal.c_str());
  std::string floor = row.floor_name.empty() ? "" : "; " + beside + ": " + row.floor_name;
  std::printf("%26s %s%s%s%s\n", "", row.work.c_str(), floor.c_str(), row.note.empty() ? "" : "; ",
              row.note.c_str());
  std::fflush(stdout);
}

std::vector<Row> rows_of(const std::string& json) {
  std::vector<Row> rows;
  for (const nlohmann::json& row : nlohmann::json::parse(json))
    rows.push_back({.name = row["name"],
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
  return rows;
}

}  // namespace

bool Row::nearly_met() const {
  constexpr double kNear = 1.5;
  return !met() && (higher_is_better ? ours >= bound / kNear : ours <= bound * kNear);
}

Row Row::best_of(const Row& again) const {
  auto better = [&](double a, double b) {
    return higher_is_better ? std::max(a, b) : std::min(a, b);
  };
  Row best = higher_is_better == (again.ours > ours) ? again : *this;  // with its note and `also`
  best.ours = better(ours, again.ours);
  best.floor = better(floor, again.floor);
  // A bound that differs between the runs follows the floor.
  if (bound != again.bound && floor > 0) best.bound = bound / floor * best.floor;
  return best;
}

void Report::add(Row row) {
  if (!silent_) {
    if (rows_.empty()) print_titles(beside_);
    print_row(row, beside_);
  }
  rows_.push_back(std::move(row));
}

void Report::print(std::size_t first) const {
  print_titles(beside_);
  for (std::size_t i = first; i < rows_.size(); ++i) print_row(rows_[i], beside_);
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
  for (Row& row : rows_of(json)) rows_.push_back(std::move(row));
}

void Report::take_again(const std::string& json) {
  for (const Row& again : rows_of(json))
    for (Row& row : rows_)
      if (row.name == again.name) row = row.best_of(again);
}

}  // namespace meshard::bench
