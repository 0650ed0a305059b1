// Curves: how a time grows with a size.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {

/// One measurement of a curve. `floor` is the least that the machine allows; 0: not measured.
struct CurvePoint {
  double size = 0, value = 0, floor = 0;
};

/// How a curve may grow.
enum class Growth {
  kLinear,  ///< exponent between the last two points at most 1.15
  kFlat,    ///< exponent over all points at most 0.05: 1.8 times from 1 k to 100 M
};

/// A time by size. Its row has the exponent: 1 means that a size 10 times as large takes 10 times
/// as long.
struct Curve {
  /// `scale.group.case`
  std::string name = {};
  std::string work = {};
  /// What is counted: `ops`.
  std::string of = {};
  std::string unit = "ms";
  std::vector<CurvePoint> points = {};
  Growth growth = Growth::kLinear;
  std::string floor_name = {};
  /// Appended to the row's note.
  std::string note = {};
};

/// The exponent of a curve: log(value ratio) / log(size ratio), of the last two points if the curve
/// may be linear, otherwise of the first and the slowest point.
double exponent_of(const Curve& curve, double CurvePoint::*value);

/// Adds the row of a curve: its exponent, and all points in the note. If the floor was measured,
/// the exponent may also be 0.1 above the floor's.
void add_curve(Report& report, const Curve& curve);

/// The minimum of `turns` calls of f(), each of which returns a time.
template <class F>
double least_of(int turns, F&& f) {
  Least least;
  for (int i = 0; i < turns; ++i) least.take(f());
  return least.value;
}

/// The minimum of several measurements f(size) for each size, of which size i has turns(size) many.
/// The sizes take turns: a shared machine is slower for some milliseconds or seconds at a time, and
/// a size that was measured only then would look like growth.
template <class Sizes, class Turns, class F>
std::vector<double> least_of_sizes(const Sizes& sizes, Turns&& turns, F&& f) {
  std::vector<double> least(std::size(sizes), Least().value);
  bool measured = true;
  for (int turn = 0; measured; ++turn) {
    measured = false;
    for (std::size_t i = 0; i < least.size(); ++i) {
      if (turn >= turns(sizes[i])) continue;
      least[i] = std::min(least[i], f(sizes[i]));
      measured = true;
    }
  }
  return least;
}

/// Milliseconds of one call.
template <class F>
double milliseconds_of(F&& f) {
  double begin = now();
  f();
  return (now() - begin) / 1e3;
}

void graph_curves(Report& report);
void transform_curves(Report& report);
void argument_curves(Report& report);
void device_curves(Report& report);
void program_curves(Report& report);
void tensor_curves(Report& report);
void mesh_curves(Report& report);
void report_curves(Report& report);
void plan_curves(Report& report);

/// A child process of device_curves(): prints its measurements. Returns the exit status.
int device_child();

}  // namespace meshard::bench
