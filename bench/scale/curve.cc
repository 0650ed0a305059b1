#include "bench/scale/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace meshard::bench {
namespace {

// 1,000 as `1k`, 100,000,000 as `100M`.
std::string size_text(double size) {
  char text[32];
  if (size >= 1e6)
    std::snprintf(text, sizeof text, "%.4gM", size / 1e6);
  else if (size >= 1e3)
    std::snprintf(text, sizeof text, "%.4gk", size / 1e3);
  else
    std::snprintf(text, sizeof text, "%.4g", size);
  return text;
}

std::string value_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

std::string points_text(const Curve& curve, double CurvePoint::*value) {
  std::string text;
  for (const CurvePoint& point : curve.points) {
    text += text.empty() ? "" : ", ";
    text += size_text(point.size) + ": " + value_text(point.*value);
  }
  return text + " " + curve.unit;
}

}  // namespace

double exponent_of(const Curve& curve, double CurvePoint::*value) {
  const std::vector<CurvePoint>& points = curve.points;
  if (points.size() < 2) return 0;
  const CurvePoint* first = &points[points.size() - 2];
  const CurvePoint* last = &points.back();
  if (curve.growth == Growth::kFlat) {
    first = &points.front();
    auto slower = [&](const CurvePoint& a, const CurvePoint& b) { return a.*value < b.*value; };
    last = &*std::max_element(points.begin(), points.end(), slower);
    if (last == first) return 0;
    // Relative to the whole range, wherever the slowest point is.
    return std::log(last->*value / first->*value) / std::log(points.back().size / first->size);
  }
  return std::log(last->*value / first->*value) / std::log(last->size / first->size);
}

void add_curve(Report& report, const Curve& curve) {
  const bool is_flat = curve.growth == Growth::kFlat;
  const bool has_floor = !curve.points.empty() && curve.points.back().floor > 0;
  Row row{.name = curve.name,
          .work = curve.work,
          .unit = "exp.",
          .ours = std::max(0.0, exponent_of(curve, &CurvePoint::value)),
          .goal = is_flat ? "exponent at most 0.05: flat" : "exponent at most 1.15: linear",
          .bound = is_flat ? 0.05 : 1.15};
  row.note = "by " + curve.of + ": " + points_text(curve, &CurvePoint::value);
  if (has_floor) {
    row.floor = std::max(0.0, exponent_of(curve, &CurvePoint::floor));
    row.floor_name = curve.floor_name + " (" + points_text(curve, &CurvePoint::floor) + ")";
    row.bound = std::max(row.bound, row.floor + 0.1);
    row.goal += ", or the floor's";
  }
  if (!curve.note.empty()) row.note += "; " + curve.note;
  report.add(std::move(row));
}

}  // namespace meshard::bench
